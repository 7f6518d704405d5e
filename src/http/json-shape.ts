/** What a body may hold, all together; anything that a client means to send is far below. */
const MEMBERS_MAX = 10_000;
const CONTAINERS_MAX = 10_000;
const VALUES_MAX = 200_000;
const STRING_BYTES_MAX = 1024 * 1024;

const [QUOTE, BACKSLASH, COMMA, COLON] = [0x22, 0x5c, 0x2c, 0x3a];
const [OPEN_ARRAY, OPEN_OBJECT] = [0x5b, 0x7b];

/** Where the string that begins at `from` ends: the index of its closing quote, or the length where there is none. */
const endOfString = (bytes: Uint8Array, from: number): number => {
  let at = from + 1;
  while (at < bytes.length && bytes[at] !== QUOTE) at += bytes[at] === BACKSLASH ? 2 : 1;
  return Math.min(at, bytes.length);
};

/**
 * Why parsing these bytes as JSON would take long, as a sentence; null when it does not. Hundreds of thousands of members
 * would hold the event loop for a second. Looks at the structure only: whether it is JSON is for the parser to say.
 */
export const findExcess = (bytes: Uint8Array): string | null => {
  let [members, containers, values] = [0, 0, 0];
  for (let at = 0; at < bytes.length; at++) {
    switch (bytes[at]) {
      case QUOTE: {
        const end = endOfString(bytes, at);
        if (end - at > STRING_BYTES_MAX) return "A string of the body is too long.";
        at = end;
        break;
      }
      case COMMA:
        if (++values > VALUES_MAX) return "The body has too many values.";
        break;
      case COLON:
        if (++members > MEMBERS_MAX) return "The body has too many fields.";
        break;
      case OPEN_ARRAY:
      case OPEN_OBJECT:
        if (++containers > CONTAINERS_MAX) return "The body has too many objects or arrays.";
        break;
      default:
    }
  }
  return null;
};
