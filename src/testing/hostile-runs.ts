/** Hostile texts for a regular expression: long runs of what it is made of. */

const RUNS_MAX = 150;
const WORDS_MAX = 6;
const HOT_MAX = 12;
const ALPHABET_MAX = 40;

/** A character outside most alphabets, on which a match fails at the end of a run. */
const STRANGER = "\u0001";

const SHORTHANDS: Readonly<Record<string, string>> = {
  ...{ d: "1", D: "x", w: "a", W: "!", s: " ", S: "x", n: "\n", r: "\r", t: "\t", f: "\f", v: "\v", 0: "\0" },
  ...{ b: "", B: "", k: "", u: "", x: "", p: "", P: "" },
};

interface Token {
  readonly text: string;
  /** The characters that it names. */
  readonly samples: readonly string[];
  readonly isRepeated: boolean;
}

const codesOf = (escaped: string): readonly string[] => {
  const code = /^\\(?:u\{([\da-f]+)\}|u([\da-f]{4})|x([\da-f]{2}))/i.exec(escaped)?.slice(1).find(Boolean);
  if (code !== undefined) return [String.fromCodePoint(Number.parseInt(code, 16))];
  const property = /^\\[pP]\{([^}]*)\}/.exec(escaped)?.[0];
  if (property !== undefined)
    return ["é", "\u200e", "a", "1", " ", "x", "\u0001", "-"].filter((c) => new RegExp(property, "u").test(c));
  const sign = escaped[1] ?? "";
  const shorthand = SHORTHANDS[sign] ?? sign;
  return sign === "s" ? [" ", "\n", "\t"] : shorthand === "" ? [] : [shorthand];
};

const ESCAPE = String.raw`\\(?:u\{[^}]*\}|u[\da-fA-F]{4}|x[\da-fA-F]{2}|[pP]\{[^}]*\}|k<[^>]*>|.)`;
const TOKENS = new RegExp(
  String.raw`(\[(?:${ESCAPE}|[^\]\\])*\]|${ESCAPE}|\(\?(?:[:=!]|<[=!]|<\w+>)|[\s\S])([*+]|\{\d+,\}|\{\d*,\d{3,}\})?`,
  "gu",
);

const samplesOf = (text: string): readonly string[] => {
  if (text.startsWith("[")) {
    const inside = text.slice(text.startsWith("[^") ? 2 : 1, -1);
    return [...inside.matchAll(new RegExp(`${ESCAPE}|[^]`, "gu"))].flatMap(([one]) => samplesOf(one));
  }
  if (text.startsWith("\\")) return codesOf(text);
  return text === "." ? ["x"] : [text];
};

/** Signs that are structure outside of classes. */
const isStructure = (text: string): boolean =>
  text.startsWith("(?") || (text.length === 1 && "()|^$?{}*+".includes(text));

const tokensOf = (pattern: string): Token[] => {
  const tokens: Token[] = [];
  const opened: number[] = [];
  for (const [, text = "", repeat] of pattern.matchAll(TOKENS)) {
    if (text.startsWith("(")) opened.push(tokens.length);
    // The content of a repeated group is repeated.
    if (text === ")") {
      const from = opened.pop() ?? 0;
      if (repeat !== undefined)
        tokens.splice(from, tokens.length - from, ...tokens.slice(from).map((one) => ({ ...one, isRepeated: true })));
    }
    if (!isStructure(text)) tokens.push({ text, samples: samplesOf(text), isRepeated: repeat !== undefined });
  }
  return tokens;
};

const matchesOne = (token: string, character: string, flags: string): boolean => {
  try {
    return new RegExp(`^(?:${token})$`, flags.replace(/[gy]/g, "")).test(character);
  } catch {
    // Not an expression alone, such as a reference to a group.
    return false;
  }
};

/** Beginning and end that an expression may want around a run, and what the runs repeat. */
export interface HostileRuns {
  readonly units: readonly string[];
  readonly prefixes: readonly string[];
  readonly suffixes: readonly string[];
}

/** The runs for an expression: its characters, pairs with those that it repeats, and its words. */
export const hostileRuns = (pattern: string, flags: string): HostileRuns => {
  const tokens = tokensOf(pattern);
  const named = [...new Set(tokens.flatMap(({ samples }) => samples))];
  const alphabet = [...new Set([...named.slice(0, ALPHABET_MAX), "x", " "])];
  const repeated = tokens.filter(({ isRepeated }) => isRepeated);
  const hot = alphabet.filter((c) => repeated.some(({ text }) => matchesOne(text, c, flags))).slice(0, HOT_MAX);
  const words = [...new Set(pattern.match(/[\p{L}\d@:/=<>"-]{2,}/gu) ?? [])].slice(0, WORDS_MAX);
  const pairs = hot.flatMap((a) => alphabet.filter((b) => b !== a).map((b) => b + a));
  const first = tokens.find(({ samples }) => samples.length > 0)?.samples[0] ?? "";
  const last = tokens.findLast(({ samples }) => samples.length > 0)?.samples[0] ?? "";
  return {
    units: [...alphabet, ...words, ...words.flatMap((word) => hot.slice(0, 3).map((c) => word + c)), ...pairs].slice(
      0,
      RUNS_MAX,
    ),
    prefixes: [...new Set(["", first, words[0] ?? ""])],
    suffixes: [...new Set(["", STRANGER, last])],
  };
};
