import { type Attachment, decodeWords } from "postal-mime";

/** One leaf of a message, decoded from its transfer encoding. */
export interface MimePart {
  /** Lower case, without parameters; `text/plain` where the part says nothing. Senders get it wrong: judge by the bytes. */
  readonly contentType: string;
  /** From Content-Disposition or Content-Type (RFC 2231 continuations joined), else Content-Description; null for none. */
  readonly name: string | null;
  readonly bytes: Uint8Array;
}

const NAME_CHARACTERS_MAX = 255;
/** Nodes looked at; a message with more is refused by its reader. */
const NODES_MAX = 1024;

/**
 * The leaves of a message that a postal-mime parser has read.
 *
 * The parser's public answer decodes text parts to strings, which destroys an archive that was sent as text/plain. Its
 * tree keeps the bytes of every part, but is not in its declarations: it is checked here, field by field, and where it
 * is missing the public `attachments` serve.
 */
export const collectParts = (parser: object, attachments: readonly Attachment[]): MimePart[] => {
  const root: unknown = Reflect.get(parser, "root");
  const parts: MimePart[] = [];
  const waiting: unknown[] = [root];
  let isTree = false;
  for (let seen = 0; waiting.length > 0 && seen < NODES_MAX; seen += 1) {
    const node = waiting.pop();
    if (!isObject(node)) continue;
    const children = node.childNodes;
    if (Array.isArray(children)) {
      isTree = true;
      // Only so many are looked at, so only so many need to wait; the reader refuses the message for their number.
      for (const child of children.slice(0, NODES_MAX).reverse()) waiting.push(child);
    }
    const part = partOf(node);
    if (part !== null) parts.push(part);
  }
  return isTree ? parts : attachments.map(attachmentPart);
};

const partOf = (node: Readonly<Record<string, unknown>>): MimePart | null => {
  const content = node.content;
  const type = parsedHeader(node.contentType);
  if (!(content instanceof ArrayBuffer) || content.byteLength === 0 || type.value.startsWith("multipart/")) return null;
  const disposition = parsedHeader(node.contentDisposition);
  const description = node.contentDescription;
  const name = disposition.params.filename ?? type.params.name ?? description;
  return {
    contentType: type.value === "" ? "text/plain" : type.value,
    name: typeof name === "string" && name.trim() !== "" ? nameOf(name) : null,
    bytes: new Uint8Array(content),
  };
};

const attachmentPart = ({ content, description, filename, mimeType }: Attachment): MimePart => {
  const name = filename ?? description ?? null;
  const bytes = typeof content === "string" ? new TextEncoder().encode(content) : new Uint8Array(content);
  return { contentType: mimeType, name: name === null ? null : nameOf(name), bytes };
};

const nameOf = (text: string): string => decodeWords(text).trim().slice(0, NAME_CHARACTERS_MAX);

const parsedHeader = (header: unknown): { value: string; params: Readonly<Record<string, unknown>> } => {
  const parsed = isObject(header) ? header.parsed : null;
  if (!isObject(parsed)) return { value: "", params: {} };
  const { value, params } = parsed;
  return { value: typeof value === "string" ? value.toLowerCase() : "", params: isObject(params) ? params : {} };
};

const isObject = (value: unknown): value is Record<string, unknown> => typeof value === "object" && value !== null;
