/** Limits of a whole body, far above what any client needs to send. */
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
 * Checks JSON text against the limits before it is parsed: hundreds of thousands of members would block the event loop for
 * a second. Returns the limit that it exceeds as a sentence, or null. Does not check that it is valid JSON.
 */
export const findExcess = (bytes: Uint8Array): string | null => {
  let [members, containers, values] = [0, 0, 0];
  for (let at = 0; at < bytes.length; at++) {
    switch (bytes[at]) {
      case QUOTE: {
        const end = endOfString(bytes, at);
        if (end - at > STRING_BYTES_MAX) return "The body contains a string of more than 1 MiB.";
        at = end;
        break;
      }
      case COMMA:
        if (++values > VALUES_MAX) return `The body has more than ${VALUES_MAX.toLocaleString("en")} values.`;
        break;
      case COLON:
        if (++members > MEMBERS_MAX) return `The body has more than ${MEMBERS_MAX.toLocaleString("en")} fields.`;
        break;
      case OPEN_ARRAY:
      case OPEN_OBJECT:
        if (++containers > CONTAINERS_MAX)
          return `The body has more than ${CONTAINERS_MAX.toLocaleString("en")} objects and arrays.`;
        break;
      default:
    }
  }
  return null;
};
