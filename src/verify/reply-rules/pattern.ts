/** One of these. Every pattern here is a source over folded text (see `foldText`). */
export const anyOf = (...sources: ReadonlyArray<string | readonly string[]>): string =>
  `(?:${sources.flat().join("|")})`;

/** Whole words only, so that "full" is not seen in "fully". For ASCII words. */
export const word = (...sources: ReadonlyArray<string | readonly string[]>): string => `\\b${anyOf(...sources)}\\b`;

/** Up to this many words between two parts of a phrase. Bounded, so that patterns stay linear. */
export const upTo = (words: 1 | 2 | 3 | 4): string => `(?:\\S{1,32} ){0,${words}}?`;

/** Some text within one sentence; a full stop inside a name does not end it. */
export const GAP = "(?:[^.;!?]|\\.(?! )){0,48}?";

/** The same for scripts that write without spaces. */
export const CJK_GAP = "[^。;!?]{0,24}?";

/** Words of one language about mailboxes. The patterns are built from it: noun … predicate, and adjective noun. */
export interface Vocabulary {
  /** Words for the mailbox and its owner. */
  readonly nouns: readonly string[];
  /** What else can be full: the disk, the quota. */
  readonly stores?: readonly string[];
  /** After the noun. */
  readonly unknown: readonly string[];
  readonly disabled: readonly string[];
  readonly full: readonly string[];
  /** Before the noun: "unknown user". */
  readonly before?: readonly string[];
  /** Other ways to say that the recipient is unknown, or the mailbox full. */
  readonly phrases?: readonly string[];
  readonly fullPhrases?: readonly string[];
  /** That the server could not check, verify or reach somebody: before or after the noun. */
  readonly unchecked: readonly string[];
  /** That a check failed, with the noun inside or without any. */
  readonly failedChecks?: readonly string[];
  readonly gap?: string;
}

const said = (of: "unknown" | "disabled" | "full") => (vocabulary: Vocabulary) => {
  const { nouns, stores = [], gap = GAP } = vocabulary;
  return `${anyOf(nouns, of === "full" ? stores : [])}${gap}${anyOf(vocabulary[of])}`;
};

const asked = ({ nouns, before = [], phrases = [] }: Vocabulary): readonly string[] => [
  ...(before.length > 0 ? [`(?<![a-z])${anyOf(before)} ${upTo(1)}${anyOf(nouns)}`] : []),
  ...phrases,
];

/** Patterns for "unknown" in these languages. */
export const unknownIn = (vocabularies: readonly Vocabulary[]): readonly string[] =>
  vocabularies.flatMap((one) => [said("unknown")(one), ...asked(one)]);

/** Patterns for "disabled". */
export const disabledIn = (vocabularies: readonly Vocabulary[]): readonly string[] =>
  vocabularies.map(said("disabled"));

/** Patterns for "full". */
export const fullIn = (vocabularies: readonly Vocabulary[]): readonly string[] =>
  vocabularies.flatMap((one) => [said("full")(one), ...(one.fullPhrases ?? [])]);

/** Patterns for "could not be verified". */
export const uncheckedIn = (vocabularies: readonly Vocabulary[]): readonly string[] =>
  vocabularies.flatMap(({ nouns, unchecked, failedChecks = [], gap = GAP }) => [
    ...failedChecks,
    `${anyOf(nouns)}${gap}${anyOf(unchecked)}`,
    `${anyOf(unchecked)}${gap}${anyOf(nouns)}`,
  ]);
