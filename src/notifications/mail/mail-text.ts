/** Text from elsewhere on one line: without control characters and without characters that change the reading direction. */
export const oneLine = (text: string): string => text.replace(/[\p{Cc}\p{Cf}\s]+/gu, " ").trim();

/** Longer text ends in `…`. */
export const cutLine = (text: string, charactersMax: number): string => {
  const line = oneLine(text);
  return line.length > charactersMax ? `${line.slice(0, charactersMax - 1)}…` : line;
};

const NAME_CHARACTERS_MAX = 120;

/** A name from elsewhere on one line of at most 120 characters. */
export const shortName = (text: string): string => cutLine(text, NAME_CHARACTERS_MAX);

/** `1,790`. */
export const formatCount = (count: number): string => count.toLocaleString("en-US");

/** `1 message`, `1,790 messages`. */
export const plural = (count: number, noun: string): string => `${formatCount(count)} ${noun}${count === 1 ? "" : "s"}`;

/** A time to the minute: `2026-11-20 08:58 UTC`. */
export const minuteTime = (ms: number): string => `${new Date(ms).toISOString().slice(0, 16).replace("T", " ")} UTC`;
