import { Icon } from "./icon.tsx";

const CHARACTERS_MAX = 40;
const END_CHARACTERS = 16;

/** A long text without its middle. */
export const middleCut = (text: string, charactersMax = CHARACTERS_MAX): string => {
  const characters = [...text];
  if (characters.length <= charactersMax) return text;
  const end = Math.min(END_CHARACTERS, Math.floor(charactersMax / 2));
  return `${characters.slice(0, charactersMax - end - 1).join("")}…${characters.slice(-end).join("")}`;
};

/** A longer text may be cut by the room that it has, so that it is whole on hover. */
const SHORT_CHARACTERS = 20;
/** An address that is longer may lose the end of each of its parts, instead of its whole domain. */
const ADDRESS_CHARACTERS = 44;

/** An address, a name or a code on one line. Where it has too little room it ends with "…". `title`: what stands there on hover. */
export const Mono = ({ text, title }: { readonly text: string; readonly title?: string }) => {
  const at = text.length > ADDRESS_CHARACTERS ? text.lastIndexOf("@") : 0;
  return (
    <span
      class={at > 0 ? "mono cut parts" : "mono cut"}
      title={title ?? (text.length > SHORT_CHARACTERS ? text : undefined)}
    >
      {at > 0 ? (
        <>
          <span class="cut">{text.slice(0, at)}</span>
          <span class="cut">{text.slice(at)}</span>
        </>
      ) : (
        text
      )}
    </span>
  );
};

/** Copies a text with one click, where scripts run. */
export const CopyButton = ({ text, label = "Copy" }: { readonly text: string; readonly label?: string }) => (
  <button type="button" class="button small" data-copy={text} hidden>
    <Icon name="copy" />
    <span>{label}</span>
  </button>
);

/** A text that is meant to be copied in one line, with its button. */
export const Copyable = ({ text }: { readonly text: string }) => (
  <span class="copyable">
    <Mono text={text} />
    <button type="button" class="copy" data-copy={text} title="Copy" hidden>
      <Icon name="copy" />
      <span class="unseen">Copy {middleCut(text)}</span>
    </button>
  </span>
);

/** A record, a key or a command to copy, whole. */
export const CopyBlock = ({ text, label }: { readonly text: string; readonly label: string }) => (
  <div class="copy-block">
    <pre tabIndex={0} title={label}>
      <code>{text}</code>
    </pre>
    <CopyButton text={text} />
  </div>
);
