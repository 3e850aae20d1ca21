"""How an observation becomes prompt tokens, and a reply becomes text.

Append only: the ids of earlier turns stand as they were sampled and are never recomputed.
"""

from __future__ import annotations

from dataclasses import dataclass

from transformers import PreTrainedTokenizerFast

from rlgraph.errors import RlgraphError
from rlgraph.llm import tiny
from rlgraph.llm.token_bound import TokenBound
from rlgraph.rl.records import Trajectory


class ChatFormatError(RlgraphError):
    """The tokenizer has no chat markup that we know."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Markup:
    """The text around the messages; it alone may contain special tokens."""

    system_open: str
    system_close: str
    user_open: str
    user_close: str
    """Ends the observation and opens the reply."""
    end: str
    """The token that ends a reply."""
    after_reply: str
    """Stands between the end token of a reply and the next observation."""


TINY = Markup(
    system_open=tiny.SYSTEM,
    system_close="",
    user_open=tiny.USER,
    user_close=tiny.ASSISTANT,
    end=tiny.END,
    after_reply="",
)
CHATML = Markup(
    system_open="<|im_start|>system\n",
    system_close="<|im_end|>\n",
    user_open="<|im_start|>user\n",
    user_close="<|im_end|>\n<|im_start|>assistant\n",
    end="<|im_end|>",
    after_reply="\n",
)


class Chat:
    """The chat format of one tokenizer."""

    def __init__(self, tokenizer: PreTrainedTokenizerFast, system: str = "") -> None:
        self._tokenizer = tokenizer
        self._markup = _markup_of(tokenizer)
        self._system = system
        self._bound = TokenBound(tokenizer)
        self.end_id: int = tokenizer.get_vocab()[self._markup.end]

    def prompt_ids(self, trajectory: Trajectory) -> tuple[int, ...]:
        """Return the tokens that the observation adds to the context, up to where the reply starts.

        The first turn is headed by the system text and the text of the prompt, where there is any.
        """
        markup = self._markup
        if not trajectory.turns:
            head = self._opening(trajectory)
        else:
            ended = trajectory.turns[-1].completion_ids[-1:] == (self.end_id,)
            head = (*self._special(("" if ended else markup.end) + markup.after_reply),)
        return (
            *head,
            *self._special(markup.user_open),
            *self._plain(trajectory.observation),
            *self._special(markup.user_close),
        )

    def is_too_long(self, trajectory: Trajectory, num_tokens: int) -> bool:
        """Say without tokenizing that `prompt_ids` gives more than so many tokens.

        False where that is not sure. It spares a huge text the tokenizer, which takes seconds.
        """
        texts = [trajectory.observation]
        if not trajectory.turns:
            texts.append(trajectory.prompt.text)
        return any(self._bound.fewest(_clean(text)) > num_tokens for text in texts)

    def reply_ids(self, text: str) -> tuple[int, ...]:
        """Return the tokens of a reply, its end token included."""
        return (*self._plain(text), self.end_id)

    def reply_text(self, completion_ids: tuple[int, ...]) -> str:
        """Return the text of a reply; special tokens are left out, broken UTF-8 becomes U+FFFD."""
        text = self._tokenizer.decode(
            list(completion_ids), skip_special_tokens=True, clean_up_tokenization_spaces=False
        )
        return str(text)

    def _opening(self, trajectory: Trajectory) -> tuple[int, ...]:
        task = trajectory.prompt.text
        # Single-turn environments repeat the task as their first observation.
        shown = (self._system, "" if task == trajectory.observation else task)
        system = "\n".join(text for text in shown if text)
        if not system:
            return ()
        markup = self._markup
        return (
            *self._special(markup.system_open),
            *self._plain(system),
            *self._special(markup.system_close),
        )

    def _special(self, text: str) -> list[int]:
        return self._encode(text, split_special_tokens=False)

    def _plain(self, text: str) -> list[int]:
        # split: an environment that prints "<|im_end|>" must not be able to end its message.
        return self._encode(_clean(text), split_special_tokens=True)

    def _encode(self, text: str, *, split_special_tokens: bool) -> list[int]:
        encoded = self._tokenizer(
            text,
            add_special_tokens=False,
            split_special_tokens=split_special_tokens,
            return_attention_mask=False,
            verbose=False,
        )
        return list(encoded["input_ids"])


def _clean(text: str) -> str:
    """Replace lone surrogates: they are not text, and tokenizers refuse them."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _markup_of(tokenizer: PreTrainedTokenizerFast) -> Markup:
    vocabulary = tokenizer.get_vocab()
    for markup in (TINY, CHATML):
        if markup.end in vocabulary:
            return markup
    raise ChatFormatError(
        f"{type(tokenizer).__name__}: no end token of a known chat format "
        f"({TINY.end!r}, {CHATML.end!r}); add its Markup to rlgraph.llm.chat"
    )
