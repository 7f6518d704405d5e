/** The same text, without the longer text in memory that it is a part of. */
export const copiedText = (text: string): string => Buffer.from(text, "utf8").toString("utf8");
