import { anchorOf } from "./guides.ts";
import { headingsOf, type ManualPage, textOf } from "./manual-page.ts";

/** Words that are in most sections find nothing. */
const COMMON = new Set(
  "the a an and or of to in is are be it its that which with for on by from as at not no one if than then when what who how can may must has have was were do does this these those all any each other only also more most there their they them your you we us our so such until after before between into out up down over under again without within while because where who whose will would per via".split(
    " ",
  ),
);
const WORD = /[\p{L}\p{N}_]{3,24}/gu;
const BASE = 36;
/** A word that is in more sections does not lead to one. */
const SECTIONS_MAX = 48;

const wordsOf = (text: string): ReadonlySet<string> =>
  new Set(
    [...text.toLowerCase().matchAll(WORD)]
      .map(([word]) => word)
      .filter((word) => !COMMON.has(word) && !/^\d/.test(word)),
  );

/** A section of a page: from its heading to the next one. */
interface Section {
  readonly anchor: string;
  readonly title: string;
  readonly text: string;
}

const sectionsOf = (page: ManualPage): readonly Section[] => {
  const { text } = page.body;
  const headings = headingsOf(page.body);
  const starts = headings.map(({ anchor, level }) => text.indexOf(`<h${level} id="${anchor}">`));
  const part = (from: number, to: number | undefined): string =>
    textOf(text.slice(from, to).replaceAll(/<\/(p|li|td|th|h[1-6]|pre)>/g, " "));
  return [
    { anchor: "", title: page.title, text: part(0, starts[0]) },
    ...headings.map(({ anchor, title }, at) => ({ anchor, title, text: part(starts[at] ?? 0, starts[at + 1]) })),
  ];
};

/** What the browser searches, as `assets/manual.js` reads it. */
interface SearchIndex {
  /** Slug and title of each page. */
  readonly pages: ReadonlyArray<readonly [string, string]>;
  /** Page, title and anchor of each section. The anchor is empty for the page itself, and left out where the title tells it. */
  readonly sections: ReadonlyArray<readonly [page: number, title: string, anchor?: string]>;
  /**
   * `4ing:1,a,2f` for each word in order: how many letters it shares with the word before (base 36), the others, and the numbers of its
   * sections (base 36), each as the distance from the one before.
   */
  readonly words: string;
}

const LETTERS_SHARED_MAX = BASE - 1;

const sharedLetters = (word: string, before: string): number => {
  let shared = 0;
  while (shared < LETTERS_SHARED_MAX && shared < word.length && word[shared] === before[shared]) shared += 1;
  return shared;
};

/** The index of all pages. Titles are searched as they are; words are those that the title of their section does not have. */
export const searchIndexOf = (pages: readonly ManualPage[]): SearchIndex => {
  const sections: Array<readonly [page: number, title: string, anchor?: string]> = [];
  const places = new Map<string, number[]>();
  for (const [at, page] of pages.entries())
    for (const { anchor, title, text } of sectionsOf(page)) {
      const number = sections.push(anchor === anchorOf(title) ? [at, title] : [at, title, anchor]) - 1;
      if (page.search === "titles") continue;
      const known = wordsOf(title);
      for (const word of wordsOf(text)) if (!known.has(word)) places.set(word, [...(places.get(word) ?? []), number]);
    }
  const words = [...places]
    .filter(([, numbers]) => numbers.length <= SECTIONS_MAX)
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .map(([word, numbers], index, all) => {
      const distances = numbers.map((number, at) => (number - (numbers[at - 1] ?? 0)).toString(BASE));
      const shared = sharedLetters(word, all[index - 1]?.[0] ?? "");
      return `${shared.toString(BASE)}${word.slice(shared)}:${distances.join(",")}`;
    });
  return { pages: pages.map(({ slug, title }) => [slug, title] as const), sections, words: words.join(" ") };
};
