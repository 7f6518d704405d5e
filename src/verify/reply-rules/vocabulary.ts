import { GAP, oneOf, upTo } from "./pattern.ts";

/** How one language speaks of a mailbox. The patterns are built from it: noun … predicate, and adjective noun. */
export interface Vocabulary {
  /** Words for the mailbox and its owner. */
  readonly nouns: readonly string[];
  /** What else can be full: the disk, the quota. */
  readonly stores?: readonly string[];
  /** Said behind the noun. */
  readonly unknown: readonly string[];
  readonly disabled: readonly string[];
  readonly full: readonly string[];
  /** Said before the noun: "unknown user". */
  readonly before?: readonly string[];
  /** Other ways to say that the recipient is unknown, or the mailbox full. */
  readonly phrases?: readonly string[];
  readonly fullPhrases?: readonly string[];
  readonly gap?: string;
}

const said = (of: "unknown" | "disabled" | "full") => (vocabulary: Vocabulary) => {
  const { nouns, stores = [], gap = GAP } = vocabulary;
  return `${oneOf(nouns, of === "full" ? stores : [])}${gap}${oneOf(vocabulary[of])}`;
};

const asked = ({ nouns, before = [], phrases = [] }: Vocabulary): readonly string[] => [
  ...(before.length > 0 ? [`(?<![a-z])${oneOf(before)} ${upTo(1)}${oneOf(nouns)}`] : []),
  ...phrases,
];

/** Patterns for "unknown" in these languages. */
export const unknownIn = (vocabularies: readonly Vocabulary[]): readonly string[] =>
  vocabularies.flatMap((one) => [said("unknown")(one), ...asked(one)]);

/** Patterns for "switched off". */
export const disabledIn = (vocabularies: readonly Vocabulary[]): readonly string[] =>
  vocabularies.map(said("disabled"));

/** Patterns for "full". */
export const fullIn = (vocabularies: readonly Vocabulary[]): readonly string[] =>
  vocabularies.flatMap((one) => [said("full")(one), ...(one.fullPhrases ?? [])]);
