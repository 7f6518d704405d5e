import { visibleMarkup } from "../base/visible-text.ts";

/** Text that is markup already. Made by `html` and `trustedMarkup` only. */
export class Markup {
  constructor(readonly text: string) {}
}

/** What a template takes: text is escaped, markup is not, nothing is nothing. */
export type MarkupValue = string | number | Markup | readonly MarkupValue[] | null | undefined | false;

const markupOf = (value: MarkupValue): string => {
  if (value === null || value === undefined || value === false) return "";
  if (value instanceof Markup) return value.text;
  return typeof value === "object" ? value.map(markupOf).join("") : visibleMarkup(Bun.escapeHTML(value));
};

/** A template for HTML: every value is escaped, in text and in quoted attributes, unless it comes from a template itself. */
export const html = (texts: TemplateStringsArray, ...values: readonly MarkupValue[]): Markup =>
  new Markup(texts.map((text, at) => text + (at < values.length ? markupOf(values[at]) : "")).join(""));

/** Markup from our own source, such as a style sheet. Never for text that comes from elsewhere. */
export const trustedMarkup = (text: string): Markup => new Markup(text);
