// SPDX-License-Identifier: Apache-2.0
//
// ESLint's recommended rules for web/ and its tests: tests/web/lint.py. Its packages lie outside of the tree, where NODE_PATH points.
'use strict';
const js = require('@eslint/js');
const globals = require('globals');

module.exports = [
  js.configs.recommended,
  // The files of web/ are joined to one script before they are checked, as src/report/document/page.cc joins them.
  { files: ['web/*.js'], languageOptions: { sourceType: 'script', globals: globals.browser } },
  { files: ['**/*.cjs'], languageOptions: { globals: { ...globals.node, ...globals.browser } } },
];
