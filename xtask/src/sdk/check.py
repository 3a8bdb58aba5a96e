"""The official OpenAI client against running `goodput mock`s.

Arguments: NAME=ADDRESS for each server (see SERVERS in mod.rs). Every value asserted here is known
by construction: what the request asked for, or what another form of the same request answered.
"""

import asyncio
import json
import math
import re
import struct
import sys
import time
import urllib.request

import openai

SERVERS = dict(argument.split("=", 1) for argument in sys.argv[1:])

# Longer than anything here takes on a busy machine, and no retry that is not asked for.
COMMON = {"api_key": "unused", "timeout": 60.0, "max_retries": 0}

MODEL = "mock"
MESSAGES = [{"role": "user", "content": "hello there"}]
# Start of text, role, two words, end of turn, role of the answer.
PROMPT_TOKENS = 6
TOKENS = 12
ASK = {"model": MODEL, "messages": MESSAGES, "max_tokens": TOKENS, "seed": 7}
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "look_up",
            "parameters": {"type": "object", "properties": {"query": {"type": "string"}}},
        },
    }
]


def url(name):
    return f"http://{SERVERS[name]}/v1"


def client(name, **changes):
    return openai.OpenAI(base_url=url(name), **{**COMMON, **changes})


def same(found, expected, what):
    assert found == expected, f"{what}: {found!r}, not {expected!r}"


def raises(kind, call, status=None):
    """The error that a call raises, which must be of exactly this class."""
    try:
        call()
    except openai.OpenAIError as error:
        same(type(error), kind, "class of the error")
        if status is not None:
            same(error.status_code, status, "status of the error")
        return error
    raise AssertionError(f"no {kind.__name__}")


def page(name):
    with urllib.request.urlopen(f"http://{SERVERS[name]}/metrics", timeout=60) as answer:
        return answer.read().decode()


def value(name, metric):
    """The sum over all labels of a metric."""
    lines = re.findall(rf"^{re.escape(metric)}(?:{{.*}})? (\S+)$", page(name), re.MULTILINE)
    assert lines, f"no {metric} on the page"
    return sum(map(float, lines))


def until_running(name, count):
    end = time.monotonic() + 30
    while value(name, "vllm:num_requests_running") != count:
        assert time.monotonic() < end, f"never {count} running"
        time.sleep(0.02)


def check_models():
    models = client("plain").models.list().data
    same([model.id for model in models], [MODEL], "models")
    same((models[0].object, models[0].owned_by), ("model", "goodput"), "model")


def joined(chunks, index=0):
    """Text, finish reasons and roles of a choice of a stream."""
    text, ends, roles = "", [], []
    for chunk in chunks:
        for choice in chunk.choices:
            if choice.index == index:
                text += choice.delta.content or ""
                ends += [choice.finish_reason] if choice.finish_reason else []
                roles += [choice.delta.role] if choice.delta.role else []
    return text, ends, roles


def check_usage(usage, answers=1):
    same(usage.prompt_tokens, PROMPT_TOKENS, "prompt tokens")
    same(usage.completion_tokens, TOKENS * answers, "completion tokens")
    same(usage.total_tokens, PROMPT_TOKENS + TOKENS * answers, "total tokens")


def check_chat():
    api = client("plain")
    whole = api.chat.completions.create(**ASK)
    same(whole.object, "chat.completion", "object")
    same(whole.model, MODEL, "model")
    check_usage(whole.usage)
    choice = whole.choices[0]
    same(len(whole.choices), 1, "choices")
    same((choice.finish_reason, choice.message.role), ("length", "assistant"), "end and role")
    text = choice.message.content
    same(len(text.split()), TOKENS, "words")

    options = {"include_usage": True}
    chunks = list(api.chat.completions.create(**ASK, stream=True, stream_options=options))
    same(joined(chunks), (text, ["length"], ["assistant"]), "streamed text")
    same({chunk.object for chunk in chunks}, {"chat.completion.chunk"}, "objects")
    same(len({chunk.id for chunk in chunks}), 1, "ids")
    with_usage = [chunk for chunk in chunks if chunk.usage is not None]
    same([chunk.choices for chunk in with_usage], [[]], "choices beside the usage")
    check_usage(with_usage[0].usage)
    plain = list(api.chat.completions.create(**ASK, stream=True))
    same([chunk.usage for chunk in plain if chunk.usage], [], "usage that nobody asked for")

    other = api.chat.completions.create(**{**ASK, "seed": 8})
    assert other.choices[0].message.content != text, "another seed says the same"

    # Without a limit the answer ends by itself; the client's own accumulator is stricter than a
    # sum of deltas, and refuses answers that were cut by a limit.
    free = {"model": MODEL, "messages": MESSAGES, "seed": 7}
    natural = api.chat.completions.create(**free).choices[0]
    same(natural.finish_reason, "stop", "end without a limit")
    with api.chat.completions.stream(**free, stream_options=options) as stream:
        final = stream.get_final_completion()
    same(final.choices[0].message.content, natural.message.content, "accumulated text")
    same(final.usage.completion_tokens, len(natural.message.content.split()), "accumulated usage")


async def check_async():
    async with openai.AsyncOpenAI(base_url=url("plain"), **COMMON) as api:
        asked = [api.chat.completions.create(**ASK) for _ in range(4)]
        whole = [answer.choices[0].message.content for answer in await asyncio.gather(*asked)]
        chunks = [chunk async for chunk in await api.chat.completions.create(**ASK, stream=True)]
        same(whole, [joined(chunks)[0]] * 4, "text of the async client")
    async with openai.AsyncOpenAI(base_url=url("slow"), **COMMON) as api:
        stream = await api.chat.completions.create(**{**ASK, "max_tokens": 5000}, stream=True)
        await anext(aiter(stream))
        await asyncio.to_thread(until_running, "slow", 1)
        await stream.close()
        await asyncio.to_thread(until_running, "slow", 0)
    try:
        async with openai.AsyncOpenAI(base_url=url("failing"), **COMMON) as api:
            await api.chat.completions.create(**ASK)
    except openai.InternalServerError as error:
        same(error.status_code, 500, "status of the async error")
    else:
        raise AssertionError("no error from the async client")


def check_choices():
    api = client("plain")
    whole = api.chat.completions.create(**ASK, n=2)
    texts = [choice.message.content for choice in whole.choices]
    same([choice.index for choice in whole.choices], [0, 1], "indexes")
    assert texts[0] != texts[1], "two choices say the same"
    check_usage(whole.usage, 2)
    chunks = list(api.chat.completions.create(**ASK, n=2, stream=True))
    for index, text in enumerate(texts):
        same(joined(chunks, index), (text, ["length"], ["assistant"]), f"choice {index}")


def check_stop():
    api = client("plain")
    text = api.chat.completions.create(**ASK).choices[0].message.content
    stop = text.split()[5]
    before = text[: text.index(stop)]
    whole = api.chat.completions.create(**ASK, stop=[stop, "never said"]).choices[0]
    same((whole.message.content, whole.finish_reason), (before, "stop"), "text before a stop")
    chunks = list(api.chat.completions.create(**ASK, stop=stop, stream=True))
    same(joined(chunks)[:2], (before, ["stop"]), "stream before a stop")


def check_logprobs():
    api = client("plain")
    ask = {**ASK, "logprobs": True, "top_logprobs": 3}
    choice = api.chat.completions.create(**ask).choices[0]
    tokens = choice.logprobs.content
    same(len(tokens), TOKENS, "tokens with logprobs")
    same("".join(token.token for token in tokens), choice.message.content, "text of the tokens")
    for token in tokens:
        same(bytes(token.bytes).decode(), token.token, "bytes of a token")
        assert token.logprob < 0 and len(token.top_logprobs) == 3, token
        best = token.top_logprobs[0]
        same((best.token, best.logprob), (token.token, token.logprob), "best alternative")
    streamed = []
    for chunk in api.chat.completions.create(**ask, stream=True):
        for part in chunk.choices:
            streamed += part.logprobs.content if part.logprobs else []
    same(streamed, tokens, "streamed logprobs")
    plain = api.completions.create(model=MODEL, prompt="hello", max_tokens=4, logprobs=2, seed=7)
    logprobs = plain.choices[0].logprobs
    same("".join(logprobs.tokens), plain.choices[0].text, "tokens of a completion")
    same([len(top) for top in logprobs.top_logprobs], [2] * 4, "alternatives of a completion")


def check_tools():
    api = client("plain")
    ask = {**ASK, "tools": TOOLS}
    named = {"type": "function", "function": {"name": "look_up"}}
    for tool_choice in ["required", named]:
        whole = api.chat.completions.create(**ask, tool_choice=tool_choice)
        choice = whole.choices[0]
        same((choice.finish_reason, choice.message.content), ("tool_calls", None), "end of a call")
        (call,) = choice.message.tool_calls
        same((call.type, call.function.name), ("function", "look_up"), "call")
        arguments = json.loads(call.function.arguments)
        same(len(arguments["query"].split()), TOKENS, "words of the arguments")

        ids, names, text, ends = [], [], "", []
        for chunk in api.chat.completions.create(**ask, tool_choice=tool_choice, stream=True):
            for part in chunk.choices:
                ends += [part.finish_reason] if part.finish_reason else []
                for delta in part.delta.tool_calls or []:
                    same(delta.index, 0, "index of a call")
                    ids += [delta.id] if delta.id else []
                    names += [delta.function.name] if delta.function.name else []
                    text += delta.function.arguments or ""
        same((ids, names), ([call.id], ["look_up"]), "streamed call")
        same((text, ends), (call.function.arguments, ["tool_calls"]), "streamed arguments")
    answer = api.chat.completions.create(**ask, tool_choice="none").choices[0]
    same((answer.finish_reason, answer.message.tool_calls), ("length", None), "no call")
    # The conversation goes on after a call.
    turns = MESSAGES + [choice.message, {"role": "tool", "tool_call_id": call.id, "content": "42"}]
    after = api.chat.completions.create(**{**ask, "messages": turns}, tool_choice="auto")
    # Role, words and end of the call, then role, number and end of the tool's answer.
    more = (1 + TOKENS + 1) + (1 + 1 + 1)
    same(after.usage.prompt_tokens, whole.usage.prompt_tokens + more, "tokens of a second turn")


def check_reasoning():
    api = client("reasoning")
    whole = api.chat.completions.create(**{**ASK, "max_tokens": 10})
    message = whole.choices[0].message
    thought = message.model_extra["reasoning_content"]
    same((len(thought.split()), len(message.content.split())), (4, 6), "words thought and said")
    same(whole.usage.completion_tokens, 10, "tokens with reasoning")
    same(whole.usage.completion_tokens_details.reasoning_tokens, 4, "tokens of reasoning")
    thoughts, said, is_order_kept = "", "", True
    for chunk in api.chat.completions.create(**{**ASK, "max_tokens": 10}, stream=True):
        delta = chunk.choices[0].delta
        more = (delta.model_extra or {}).get("reasoning_content")
        is_order_kept &= not (more and said)
        thoughts += more or ""
        said += delta.content or ""
    same((thoughts, said, is_order_kept), (thought, message.content, True), "streamed reasoning")


def check_completions():
    api = client("plain")
    ask = {"model": MODEL, "prompt": "hello there", "max_tokens": 5, "seed": 7}
    whole = api.completions.create(**ask)
    same((whole.object, whole.choices[0].finish_reason), ("text_completion", "length"), "answer")
    text = whole.choices[0].text
    same(len(text.split()), 5, "words of a completion")
    # Start of text and two words.
    same((whole.usage.prompt_tokens, whole.usage.completion_tokens), (3, 5), "usage")
    chunks = list(api.completions.create(**ask, stream=True, stream_options={"include_usage": True}))
    streamed = "".join(choice.text for chunk in chunks for choice in chunk.choices)
    same(streamed, text, "streamed completion")
    same([chunk.usage.completion_tokens for chunk in chunks if chunk.usage], [5], "streamed usage")
    echoed = api.completions.create(**ask, echo=True).choices[0].text
    same(echoed, "hello there" + text, "echo")
    echoed = "".join(chunk.choices[0].text for chunk in api.completions.create(**ask, echo=True, stream=True))
    same(echoed, "hello there" + text, "streamed echo")
    many = api.completions.create(**{**ask, "prompt": ["hello there", "goodbye"]}, n=2)
    same([choice.index for choice in many.choices], [0, 1, 2, 3], "indexes of two prompts")
    same(many.choices[0].text, text, "first of two prompts")
    same((many.usage.prompt_tokens, many.usage.completion_tokens), (3 + 3, 20), "usage of two")
    tokens = api.completions.create(**{**ask, "prompt": [[100, 200, 300]]})
    same(tokens.usage.prompt_tokens, 3, "prompt of tokens")


def check_embeddings():
    api = client("plain")
    texts = ["hello there", "goodbye"]
    # The client asks for base64 by itself where no format is named, and decodes it.
    default = api.embeddings.create(model=MODEL, input=texts)
    floats = api.embeddings.create(model=MODEL, input=texts, encoding_format="float")
    same((default.object, len(default.data), len(default.data[0].embedding)), ("list", 2, 64), "shape")
    same(default.usage.prompt_tokens, 3 + 3, "tokens of two texts")

    def single(numbers):
        return struct.pack(f"<{len(numbers)}f", *numbers)

    for index, (one, other) in enumerate(zip(default.data, floats.data, strict=True)):
        same((one.index, other.index), (index, index), "index")
        same(single(one.embedding), single(other.embedding), "base64 and floats")
        assert math.isclose(math.hypot(*one.embedding), 1.0, abs_tol=1e-5), "not of length one"
    assert default.data[0].embedding != default.data[1].embedding, "two texts are the same"
    short = api.embeddings.create(model=MODEL, input="hello", dimensions=8)
    same(len(short.data[0].embedding), 8, "dimensions")


def check_errors():
    api = client("plain")
    chat = api.chat.completions.create
    error = raises(openai.BadRequestError, lambda: chat(**{**ASK, "temperature": 3}), 400)
    same((error.param, error.type), ("temperature", "invalid_request_error"), "bad value")
    error = raises(openai.BadRequestError, lambda: chat(**{**ASK, "max_tokens": 10**7}), 400)
    same(error.code, "context_length_exceeded", "too long")
    error = raises(openai.BadRequestError, lambda: chat(**{**ASK, "messages": []}, stream=True), 400)
    same(error.param, "messages", "nothing said")
    error = raises(openai.NotFoundError, lambda: chat(**{**ASK, "model": "nope"}), 404)
    same((error.param, error.code), ("model", "model_not_found"), "unknown model")
    error = raises(openai.NotFoundError, lambda: api.files.list(), 404)
    same(error.code, "not_found", "unknown path")

    error = raises(openai.AuthenticationError, lambda: client("keyed").models.list(), 401)
    same(error.code, "invalid_api_key", "wrong key")
    same(len(client("keyed", api_key="sesame").models.list().data), 1, "models with the key")

    error = raises(openai.RateLimitError, lambda: client("limited").chat.completions.create(**ASK), 429)
    same((error.code, error.response.headers["retry-after"]), ("rate_limit_exceeded", "1"), "limit")
    error = raises(openai.InternalServerError, lambda: client("failing").completions.create(model=MODEL, prompt="x"), 500)
    same((error.code, error.type), ("engine_error", "server_error"), "failure")


def check_broken_streams():
    whole = client("plain").chat.completions.create(**ASK).choices[0].message.content
    half = "".join(f" {word}" for word in whole.split()[: TOKENS // 2])
    for name in ["spoilt", "cut"]:
        text, error = "", None
        kind = openai.APIError if name == "spoilt" else openai.APIConnectionError
        try:
            for chunk in client(name).chat.completions.create(**ASK, stream=True):
                text += "".join(choice.delta.content or "" for choice in chunk.choices)
        except openai.OpenAIError as raised:
            error = raised
        same((text, type(error)), (half, kind), f"{name} stream")
    same(client("odd").chat.completions.create(**ASK).choices[0].message.content, whole, "odd")
    odd = list(client("odd").chat.completions.create(**ASK, stream=True))
    same(joined(odd)[:2], (whole, ["length"]), "stream with comments, CRLF and split writes")


def check_retries():
    api = client("flaky", max_retries=1)
    api.chat.completions.create(**ASK)
    begin = time.monotonic()
    api.chat.completions.create(**ASK)
    waited = time.monotonic() - begin
    assert waited >= 2, f"retried after {waited:.2f} s, though told to wait for 2"
    same(value("flaky", "mock_faults_total"), 1, "refusals")
    error = raises(openai.RateLimitError, lambda: client("limited", max_retries=1).chat.completions.create(**ASK), 429)
    assert error.request.headers["x-stainless-retry-count"] == "1", "not retried"


def check_closing():
    api = client("slow")
    for _ in range(2):
        stream = api.chat.completions.create(**{**ASK, "max_tokens": 5000}, stream=True)
        for _ in range(3):
            next(stream)
        until_running("slow", 1)
        stream.close()
        until_running("slow", 0)
    same(value("slow", "vllm:num_requests_waiting"), 0, "waiting")
    raises(openai.APITimeoutError, lambda: client("slow", timeout=0.2).chat.completions.create(**{**ASK, "max_tokens": 5000}))
    until_running("slow", 0)


def main():
    for check in [
        check_models,
        check_chat,
        check_choices,
        check_stop,
        check_logprobs,
        check_tools,
        check_reasoning,
        check_completions,
        check_embeddings,
        check_errors,
        check_broken_streams,
        check_retries,
        check_closing,
    ]:
        check()
    asyncio.run(check_async())


main()
