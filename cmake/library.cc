// SPDX-License-Identifier: Apache-2.0
//
// libgpuwhy.so is made of the layers; CMake wants a source of its own.
