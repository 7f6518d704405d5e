import { describe, expect, test } from "bun:test";
import { Glob } from "bun";
import { type Comment, parseSync } from "oxc-parser";
import { nodesOf } from "./source-nodes.ts";

const VERBS =
  "is|are|was|were|isn't|has|have|had|does|do|did|will|would|can|cannot|could|may|might|must|shall|should|counts|comes|goes|stays|waits|needs|gets|ends|begins|remains|belongs|follows|decides|may";
const WORDS_OF_CLAUSE =
  "is|are|was|were|has|have|had|does|do|did|say|says|said|tells?|sends?|sent|emits?|needs?|means?|returns?|returned|shows?|takes?|took|leaves?|left|writes?|wrote|knows?|finds?|found|includes|opens?|uses?|used|makes?|made|came|comes|exceeds?|exceeded|follows|breaks?|fails?|failed|begins?|began|ends?|holds?|waits?|belongs|stands|precedes|goes|went|adds?|added|changes|changed|becomes|became|fits?|wants?|tell|starts?|saves?|sees";
/** Words that begin a clause of its own, whose verb is not the verb of the sentence. */
const SUBORDINATE =
  /\b(?:that|which|who|whose|whom|when|if|where|while|because|until|before|after|what|whether|how|so|as|unless|though|since|than|and|or|but)\b/i;

/** `What is left is removed`: a clause with What or Who, and behind it the verb that it is the subject of. */
const isClauseSubject = (sentence: string): boolean => {
  if (!/^(?:What|Who|Whom|Whoever|Whatever)\b/.test(sentence) || sentence.endsWith("?")) return false;
  const [head = ""] = sentence.split(/[,;:()–—]/, 1);
  const [, begin, rest] = new RegExp(`^(\\w+ (?:[^ ]+ ){0,6}?(?:${WORDS_OF_CLAUSE}) )(.*)$`).exec(head) ?? [];
  if (begin === undefined || rest === undefined || SUBORDINATE.test(begin.replace(/^\w+/, ""))) return false;
  const [, between] = new RegExp(`^(.*?)\\b(?:${VERBS})\\b(?! *$)`).exec(rest) ?? [];
  return between !== undefined && !SUBORDINATE.test(between) && !/\b(?:it|they|we|you)\b/.test(between);
};

/** Where a sentence is: at the beginning of a comment, with no noun before it, behind that, or in a text for people. */
type Place = "opening" | "comment" | "text";

interface Rule {
  readonly what: string;
  readonly breaks: (sentence: string, place: Place) => boolean;
}

const PRONOUN_SUBJECT =
  /^(?:(?:It|They|He|She) |(?:Its|Their) |Those (?:of|that|who|which|whose|in|with|about|beyond|under|are|were)\b|(?:This|These|That) (?:is|are|was|were|has|have|must|may|can|cannot|does|do|says?|settles?|ends?)\b|One (?:that|who|which|is|behind|by)\b)/;
const PRONOUN_OBJECT =
  /^[A-Z]\w+s (?:it|them|that|this|those|one)(?:[.;,:]|$| (?:again|back|off|for good|at once|soon|pending)\b)/;
const PRONOUN_THAT =
  /^That (?:is|was|must|can|cannot|could|may|might|has|had|does|did|says|took|would|will|means|needs)\b(?! to say|,)/;

const RULES: readonly Rule[] = [
  {
    what: "a clause as the subject",
    breaks: (sentence, place) =>
      isClauseSubject(sentence) ||
      // Only at the beginning of a comment a clause can be a title: "What a list costs."
      (place === "comment" && /^(?:What|Who|Whom|Whoever|Whatever)\b[^?]*$/.test(sentence)) ||
      /^(?:Whether|How|That) [^,;:]*\b(?:is|are) (?:un|not )(?:known|decided)\b/.test(sentence),
  },
  {
    what: "so many, so long",
    breaks: (sentence) => /(?<![,;:] )\bso (?:many|much|few|long|often)\b(?![^.;]*\b(?:that|as)\b)/i.test(sentence),
  },
  {
    what: "is none",
    breaks: (sentence) =>
      /(?<!\b[tT]here )\b(?:is|are|was|were) none\b(?! (?:of|left|at|in|when|for)\b)/.test(sentence),
  },
  {
    what: "a pronoun without its noun",
    breaks: (sentence, place) =>
      PRONOUN_THAT.test(sentence) ||
      (place === "opening" && (PRONOUN_SUBJECT.test(sentence) || PRONOUN_OBJECT.test(sentence))),
  },
];

interface Text {
  readonly start: number;
  readonly text: string;
}

const DIRECTIVE = /^(?:\/|#| ?biome-|\s*@ts-|\s*oxlint|\s*<reference)/;

/** Comments, those of consecutive lines as one, in the order of the file. */
const commentsOf = (source: string, comments: readonly Comment[]): Text[] => {
  const texts: Array<Text & { readonly end: number; readonly isLine: boolean }> = [];
  for (const { type, value, start, end } of comments) {
    if (DIRECTIVE.test(value)) continue;
    const isLine = type === "Line";
    const before = texts.at(-1);
    if (isLine && before?.isLine === true && /^\n[ \t]*$/.test(source.slice(before.end, start)))
      texts[texts.length - 1] = { ...before, text: `${before.text} ${value}`, end };
    else texts.push({ start, end, isLine, text: value.replace(/^\*/, "").replace(/\n\s*\*/g, "\n") });
  }
  return texts;
};

/** Texts that people read: literals with several words, and texts of pages. */
const messagesOf = (path: string, source: string): Text[] =>
  nodesOf(path, source).flatMap((node) => {
    const { start } = node;
    if (node.type === "Literal" || node.type === "JSXText")
      return typeof node.value === "string" && /\w \w/.test(node.value) ? [{ start, text: node.value }] : [];
    if (node.type !== "TemplateLiteral" || !Array.isArray(node.quasis)) return [];
    return [{ start, text: source.slice(start + 1, node.end - 1).replace(/\$\{[^{}]*\}/g, "…") }];
  });

const sentencesOf = (text: string): string[] =>
  text
    .replace(/`[^`]*`/g, "X")
    .replace(/\s+/g, " ")
    .trim()
    .split(/(?<=[.!?]["”)]?) (?=[A-Z“"])/);

const problemsOf = (texts: readonly Text[], isComment: boolean, path: string, source: string): string[] =>
  texts.flatMap(({ start, text }) =>
    sentencesOf(text).flatMap((sentence, at) =>
      RULES.filter(({ breaks }) => breaks(sentence, isComment ? (at === 0 ? "opening" : "comment") : "text")).map(
        ({ what }) => `${path}:${source.slice(0, start).split("\n").length} ${what}: ${sentence}`,
      ),
    ),
  );

const isTest = (path: string): boolean => /\.test\.tsx?$|^src\/testing\/|^scripts\//.test(path);

/** The sentences of a file that break a rule, as `file:line rule: sentence`; of tests and scripts only comments are read. */
const languageProblems = (path: string, source: string): string[] => [
  ...problemsOf(commentsOf(source, parseSync(path, source).comments), true, path, source),
  ...(isTest(path) ? [] : problemsOf(messagesOf(path, source), false, path, source)),
];

test("comments, messages and pages have sentences of nouns and verbs", async () => {
  const root = new URL("../..", import.meta.url).pathname;
  const paths = [...new Glob("{src,scripts}/**/*.{ts,tsx}").scanSync(root)];
  expect(paths.length).toBeGreaterThan(1_000);
  const sources = await Promise.all(paths.map(async (path) => [path, await Bun.file(root + path).text()] as const));
  expect(sources.flatMap(([path, source]) => languageProblems(path, source)).toSorted()).toEqual([]);
});

describe("the check can fail", () => {
  test.each([
    ["a clause as the subject", "/** Ceilings of a message. What exceeds them is refused. */"],
    ["a clause as the subject", "// What is left over is withdrawn with the next report."],
    ["a clause as the subject", "/** Whoever knows the secret can send events. */"],
    ["a clause as the subject", 'const text = "What is finished stays. A list cannot be resumed.";'],
    ["a clause as the subject", "const text = <p>What is not charged comes back.</p>;"],
    ["a clause as the subject", "const text = `Whether \u0024{address} is listed is not known: try again.`;"],
    ["so many, so long", "/** A session ends when it was not used for so long. */"],
    ["so many, so long", "/** Resolves when so many\n * connections are open. */"],
    ["is none", "/** Throws for a text that is none. */"],
    ["a pronoun without its noun", "/** Ends that. */"],
    ["a pronoun without its noun", "/** Its statements; a test plans each. */"],
    ["a pronoun without its noun", "// It may reject\n// before the flush."],
    ["a pronoun without its noun", "/** Those of many targets. */"],
    ["a pronoun without its noun", 'const text = "No report covers these days. That is not the same as no mail.";'],
  ])("%s: %s", (rule, source) => {
    expect(languageProblems("src/a.tsx", source)).toEqual([expect.stringContaining(`src/a.tsx:1 ${rule}: `)]);
  });

  test("only comments are read in tests and scripts", () => {
    const source = 'const text = "What is left is removed.";\n\n// What is left is removed.\n';
    for (const path of ["src/a.test.ts", "src/testing/a.ts", "scripts/a.ts"])
      expect(languageProblems(path, source)).toEqual([`${path}:3 a clause as the subject: What is left is removed.`]);
  });
});

test.each([
  ["a title", "/** What a list costs, and who may use it. */"],
  ["a title with an auxiliary verb", "/** What a source can be classified as. */"],
  ["a clause with a clause in it", "/** What an app needs for codes that are not confirmed yet. */"],
  ["a heading", 'const text = "What to publish";'],
  ["a question", "const text = <h2>What is a list?</h2>;"],
  ["a description", 'const text = "Whether the list is queried. Default: true.";'],
  ["a consequence", "/** The service monitors so many domains that checks wait. */"],
  ["a conclusion", 'const text = "It has no PTR record, so many servers refuse mail.";'],
  ["an absence", "/** The delisting page; null when there is none. */"],
  ["a pronoun behind its noun", "/** Removes the list. It must be complete. */"],
  ["a pronoun behind its noun in the lines above", "// The list is complete.\n// It is removed."],
  ["a determiner", "/** This machine is the only client. */"],
  ["code", "/** `That is` and `so many`. */"],
  ["a directive", "// biome-ignore lint/style/noNonNullAssertion: it is"],
])("%s passes", (_, source) => {
  expect(languageProblems("src/a.tsx", source)).toEqual([]);
});
