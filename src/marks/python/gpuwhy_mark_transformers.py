# SPDX-License-Identifier: Apache-2.0
"""Marks of Hugging Face transformers: ranges around generate and the forward calls of the model that generates.

generate is wrapped where it is defined. The first generate of a model class gives the class a __call__ that marks, so models
that only train or embed are never touched. The marks are outside of what torch.compile compiles: while it traces, __call__ is
the model's own. Only shapes are looked at, never values, so no GPU is waited for.

  request      one generate
  prefill      its first forward, or all chunks of it: sequences x length, unless the caller brought a cache along
  decode_all   from the first step to the end
  decode_step  a forward of one position: its sequences, beams included
  verify       a later forward of several positions with a cache: drafts, which the model checks

Not marked: forward outside of generate, models inside of the model, a generate inside of a generate (draft models), steps
without a cache, and steps of generate with guidance_scale, which runs the model twice.
"""
import functools
import inspect
import sys
import threading

import gpuwhy_marks
from gpuwhy_marks import DECODE_ALL, DECODE_STEP, PREFILL, REQUEST, VERIFY, note

PARAMETERS = ("self", "inputs", "generation_config")
QUERIES = ("input_ids", "inputs_embeds")
DECODER_QUERIES = ("decoder_input_ids", "decoder_inputs_embeds")
UNKNOWN = -(1 << 40)
CACHES = ("past_key_values", "cache_params", "past_buckets_states")


class _Local(threading.local):
    generation = None


class _Generation:
    """One generate of a thread, and the ranges it has open."""

    __slots__ = ("model", "queries", "has_cache", "is_inside", "is_chunked", "is_marked", "has_loop", "has_drafts",
                 "is_first", "batch", "context")

    def __init__(self, model, kwargs):
        self.model = model
        is_pair = bool(getattr(getattr(model, "config", None), "is_encoder_decoder", False))
        self.queries = DECODER_QUERIES if is_pair else QUERIES
        self.is_first = not is_pair  # a decoder beside an encoder starts with a step
        self.has_cache = any(kwargs.get(name) is not None for name in CACHES)
        self.is_inside = self.is_chunked = self.has_loop = self.has_drafts = False
        self.is_marked = True
        self.batch = 0  # of steps that take the short way; 0: none do
        self.context = UNKNOWN  # tokens of a sequence in the cache; below 0: not known


def _guidance_of(kwargs):
    of_config = getattr(kwargs.get("generation_config"), "guidance_scale", None)
    return kwargs.get("guidance_scale", of_config)


class _Marker:
    def __init__(self, marks):
        self.push, self.pop, self.step, self.set_batch = marks.push, marks.pop, marks.step, marks.set_batch
        self.local = _Local()
        torch = sys.modules.get("torch")
        # torch.compile takes this for True while it traces; elsewhere it is a function that returns False.
        self.is_compiling = getattr(getattr(torch, "compiler", None), "is_dynamo_compiling", None)
        if self.is_compiling is None:
            if hasattr(torch, "compile"):
                raise RuntimeError("this PyTorch has torch.compile and no torch.compiler.is_dynamo_compiling")
            self.is_compiling = lambda: False
        profiler = getattr(getattr(torch, "autograd", None), "profiler", None)
        fits = hasattr(profiler, "_is_profiler_enabled") and hasattr(profiler, "record_function")
        self.profiler = profiler if fits else None

    # generate

    def begin(self, model, kwargs):
        """None where nothing can be marked."""
        try:
            generation = _Generation(model, kwargs)
            if _guidance_of(kwargs) not in (None, 1):
                generation.is_marked = False
                note("steps of generate with guidance_scale are not marked: it runs the model twice")
            self.give_call(type(model))
            self.push(REQUEST, -1)
            self.local.generation = generation
            return generation
        except Exception as error:
            note(f"a generate is not marked: {type(error).__name__}: {error}")
            return None

    def end(self, generation):
        self.local.generation = None
        try:
            if generation.has_loop:
                self.pop()
            self.pop()
        except Exception as error:
            note(f"the end of a generate is not marked: {type(error).__name__}: {error}")

    # forward

    def enter(self, generation, kwargs):
        """Begins the range of a forward. Returns whether there is one, and PyTorch's own beside it or None."""
        try:
            generation.is_inside = True
            if not generation.is_marked or generation.is_chunked:
                return False, None
            for name in generation.queries:
                queries = kwargs.get(name)
                if queries is not None:
                    break
            else:
                generation.is_marked = False
                note(f"steps of {type(generation.model).__name__} are not marked: it takes no {generation.queries[0]}")
                return False, None
            shape = queries.shape
            batch, length = shape[0], shape[1]
            if generation.is_first:
                generation.is_first = False
                return self.begin_prefill(generation, batch, length), self.record("prefill", generation, batch, length)
            if length == 1:
                if not generation.has_loop and not generation.has_drafts:
                    self.push(DECODE_ALL, -1)
                    generation.has_loop = True
                self.push(DECODE_STEP, batch)
                generation.context += 1
                if self.step is not None and name == "input_ids" and generation.batch != batch and len(shape) == 2:
                    self.set_batch(batch)
                    generation.batch = batch
                if self.profiler is None or not self.profiler._is_profiler_enabled:
                    return True, None
                return True, self.record("decode_step", generation, batch, 1)
            if not any(kwargs.get(name) is not None for name in CACHES) or kwargs.get("use_cache") is False:
                generation.is_marked = False
                note("steps of generate without a cache are not marked: each reads the whole text again")
                return False, None
            if generation.has_loop:  # the loop is not of steps alone
                self.pop()
                generation.has_loop = False
            generation.has_drafts = True
            generation.context = UNKNOWN  # how many drafts were right is not known here
            self.push(VERIFY, batch * length)
            return True, self.record("verify", generation, batch, length)
        except Exception as error:
            generation.is_marked = False
            note(f"steps are not marked: {type(error).__name__}: {error}")
            return False, None

    def begin_prefill(self, generation, batch, length):
        generation.context = UNKNOWN if generation.has_cache else length
        self.push(PREFILL, -1 if generation.has_cache else batch * length)
        return True

    def record(self, stage, generation, batch, length):
        """The step as a record_function with its sums, while PyTorch's profiler runs: src/analysis/stages/step_markers.cc."""
        if self.profiler is None or not self.profiler._is_profiler_enabled:
            return None
        try:
            phase = "c" if stage == "prefill" else "g"
            text = f"transformers.{stage}[bs={batch} toks={batch * length}"
            if generation.context >= 0:
                text += (f" {phase}_sk={batch * generation.context} {phase}_sqsq={batch * length * length}"
                         f" {phase}_sqsk={batch * length * generation.context}")
            record = self.profiler.record_function(text + "]")
            record.__enter__()
            return record
        except Exception:
            return None

    def leave(self, generation, has_range, record):
        generation.is_inside = False
        try:
            if record is not None:
                record.__exit__(None, None, None)
            if has_range:
                self.pop()
        except Exception as error:
            generation.is_marked = False
            note(f"the end of a step is not marked: {type(error).__name__}: {error}")

    # wrappers

    def wrap_generate(self, original):
        @functools.wraps(original)
        def generate(self, *args, **kwargs):
            if marker.local.generation is not None or marker.is_compiling():
                return original(self, *args, **kwargs)
            generation = marker.begin(self, kwargs)
            if generation is None:
                return original(self, *args, **kwargs)
            try:
                return original(self, *args, **kwargs)
            finally:
                marker.end(generation)

        marker = self
        return generate

    def give_call(self, cls):
        """The class gets a __call__ of its own, and a compiled one. Once a class."""
        if hasattr(cls.__call__, "gpuwhy_marks"):
            return
        # Its __call__ is looked up at each call: torch.fx exchanges that of nn.Module while it traces.
        owner = next(base for base in cls.__mro__ if "__call__" in base.__dict__)
        if owner is cls:
            owner = type("Original", (), {"__call__": cls.__call__})
        is_compiling, local, enter, leave = self.is_compiling, self.local, self.enter, self.leave
        step, pop, profiler = self.step, self.pop, self.profiler

        def __call__(self, *args, **kwargs):
            if is_compiling():
                return owner.__call__(self, *args, **kwargs)
            generation = local.generation
            if generation is None or generation.model is not self or generation.is_inside:
                return owner.__call__(self, *args, **kwargs)
            # What happens thousands of times is a step like the one before: enter and leave, in short.
            if generation.batch and not (profiler is not None and profiler._is_profiler_enabled):
                queries = kwargs.get("input_ids")
                shape = (0, 0) if queries is None else queries.shape
                if shape[1] == 1 and shape[0] == generation.batch:
                    generation.is_inside = True
                    generation.context += 1
                    step()
                    try:
                        return owner.__call__(self, *args, **kwargs)
                    finally:
                        pop()
                        generation.is_inside = False
            has_range, record = enter(generation, kwargs)
            try:
                return owner.__call__(self, *args, **kwargs)
            finally:
                leave(generation, has_range, record)

        __call__.gpuwhy_marks = True
        cls.__call__ = __call__
        if callable(getattr(cls, "get_compiled_call", None)):
            cls.get_compiled_call = self.wrap_compiled(cls.get_compiled_call)

    def wrap_compiled(self, original):
        local, enter, leave = self.local, self.enter, self.leave

        @functools.wraps(original)
        def get_compiled_call(self, *args, **kwargs):
            compiled = original(self, *args, **kwargs)
            if local.generation is None or local.generation.model is not self:
                return compiled

            def call(*inputs, **named):
                generation = local.generation
                if generation is None or generation.model is not self or generation.is_inside:
                    return compiled(*inputs, **named)
                has_range, record = enter(generation, named)
                try:
                    return compiled(*inputs, **named)
                finally:
                    leave(generation, has_range, record)

            return call

        return get_compiled_call

    def wrap_chunks(self, original):
        """One prefill around all chunks of a prompt."""
        signature = inspect.signature(original)

        @functools.wraps(original)
        def prefill(self, *args, **kwargs):
            generation = marker.local.generation
            if generation is None or generation.model is not self:
                return original(self, *args, **kwargs)
            has_range, record = marker.begin_chunks(generation, signature, (self, *args), kwargs)
            try:
                return original(self, *args, **kwargs)
            finally:
                generation.is_chunked = False
                marker.leave(generation, has_range, record)

        marker = self
        return prefill

    def begin_chunks(self, generation, signature, args, kwargs):
        try:
            given = signature.bind(*args, **kwargs).arguments
            is_chunked = getattr(given["generation_config"], "prefill_chunk_size", None) is not None
            if not is_chunked or not generation.is_marked or not generation.is_first:
                return False, None
            batch, length = given["input_ids"].shape[:2]
            generation.is_first = False
            generation.is_chunked = self.begin_prefill(generation, batch, length)
            return True, self.record("prefill", generation, batch, length)
        except Exception as error:
            note(f"chunks of a prompt are not marked: {type(error).__name__}: {error}")
            return False, None


def install(module, marks):
    version = getattr(sys.modules.get("transformers"), "__version__", "of an unknown version")
    mixin = getattr(module, "GenerationMixin", None)
    generate = getattr(mixin, "generate", None)
    if not inspect.isclass(mixin) or not inspect.isfunction(generate):
        note(f"transformers {version} is not marked: it has no GenerationMixin.generate")
        return
    parameters = tuple(inspect.signature(generate).parameters)[:len(PARAMETERS)]
    if parameters != PARAMETERS:
        note(f"transformers {version} is not marked: generate takes {', '.join(parameters)}, not {', '.join(PARAMETERS)}")
        return
    marker = _Marker(marks)
    mixin.generate = marker.wrap_generate(generate)
    # 5.x and 4.50 to 4.57.
    for name in ("_prefill", "_prefill_chunking"):
        chunks = getattr(mixin, name, None)
        if inspect.isfunction(chunks) and {"input_ids", "generation_config"} <= set(inspect.signature(chunks).parameters):
            setattr(mixin, name, marker.wrap_chunks(chunks))
    note(f"transformers {version} is marked", "ok")
