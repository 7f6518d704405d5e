import { stat } from "node:fs/promises";
import { looksLikeAddress } from "./columns-address.ts";

/** What is known of a file from its beginning: a longer JSON text is not parsed, which could take a second. */
const HEAD_BYTES = 64 * 1024;
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

/** How a long text begins that is an object with `emails`, or an array whose first strings have an address among them. */
const beginsLikeOrder = (head: string): boolean => {
  if (/^\{\s*"/.test(head)) return /"emails"\s*:\s*\[/.test(head);
  if (!/^\[\s*"/.test(head)) return false;
  return head.matchAll(/"([^"\\]*)"\s*,/g).some(([, entry = ""]) => looksLikeAddress(entry));
};

/**
 * Whether a file that should hold a CSV holds the JSON of an order instead: an object with `emails`, or an array of
 * addresses. Read as CSV, its first row would be taken for addresses.
 */
export const isJsonList = async (path: string): Promise<boolean> => {
  const file = Bun.file(path);
  const head = (await file.slice(0, HEAD_BYTES).text()).replace(BYTE_ORDER_MARK, "").trimStart();
  if (!/^[[{]/.test(head)) return false;
  if (/^\{\s*"emails"\s*:\s*\[/.test(head)) return true;
  const { size } = await stat(path);
  return size <= HEAD_BYTES ? hasEmails(parsed(head)) : beginsLikeOrder(head);
};
