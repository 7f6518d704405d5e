/** A text of users in one line of a mail: without control and format characters. */
export const oneLine = (text: string): string => text.replace(/[\p{Cc}\p{Cf}\s]+/gu, " ").trim();

/** `1 listing`, `2 listings`. */
export const plural = (count: number, what: string): string => `${count} ${what}${count === 1 ? "" : "s"}`;
