import { stat } from "node:fs/promises";
import { looksLikeAddress } from "./columns-address.ts";

/** A longer text is told by its beginning only. */
const PARSED_BYTES_MAX = 8 * 1024 * 1024;
const HEAD_BYTES = 256;
const BYTE_ORDER_MARK = /^\ufeff/;

const parsed = (text: string): unknown => {
  try {
    return JSON.parse(text);
  } catch {
    // Then it is no JSON, and that is the answer.
    return null;
  }
};

const hasEmails = (value: unknown): boolean =>
  Array.isArray(value)
    ? value.some((entry) => typeof entry === "string" && looksLikeAddress(entry))
    : typeof value === "object" && value !== null && "emails" in value && Array.isArray(value.emails);

/**
 * Whether a file that should hold a CSV holds the JSON of an order instead: an object with `emails`, or an array of
 * addresses. Read as CSV, its first row would be taken for addresses.
 */
export const isJsonOrder = async (path: string): Promise<boolean> => {
  const file = Bun.file(path);
  const head = (await file.slice(0, HEAD_BYTES).text()).replace(BYTE_ORDER_MARK, "").trimStart();
  if (!/^[[{]/.test(head)) return false;
  if (/^\{\s*"emails"\s*:\s*\[/.test(head)) return true;
  const { size } = await stat(path);
  return size <= PARSED_BYTES_MAX && hasEmails(parsed((await file.text()).replace(BYTE_ORDER_MARK, "")));
};
