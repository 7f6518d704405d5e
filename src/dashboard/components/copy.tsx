import { Icon } from "./inline.tsx";

const CHARACTERS_MAX = 40;
const END_CHARACTERS = 16;

/** A long text without its middle. */
export const middleCut = (text: string, charactersMax = CHARACTERS_MAX): string => {
  const characters = [...text];
  if (characters.length <= charactersMax) return text;
  const end = Math.min(END_CHARACTERS, Math.floor(charactersMax / 2));
  return `${characters.slice(0, charactersMax - end - 1).join("")}…${characters.slice(-end).join("")}`;
};

/** An address, a name or a code; cut in the middle when it is long, whole on hover. */
export const Mono = ({ text, charactersMax }: { readonly text: string; readonly charactersMax?: number }) => {
  const shown = middleCut(text, charactersMax);
  return (
    <span class="mono" title={shown === text ? undefined : text}>
      {shown}
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
export const Copyable = ({ text, charactersMax }: { readonly text: string; readonly charactersMax?: number }) => (
  <span class="copyable">
    <Mono text={text} {...(charactersMax === undefined ? {} : { charactersMax })} />
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
