/** Accessibility of a page, by axe-core. */
import { readFileSync } from "node:fs";
import type { Page } from "playwright-core";

const SOURCE = readFileSync(new URL("../../node_modules/axe-core/axe.min.js", import.meta.url), "utf8");
const NODES_SHOWN = 4;

interface AxeViolation {
  readonly id: string;
  readonly help: string;
  readonly nodes: ReadonlyArray<{
    readonly target: readonly string[];
    readonly any?: ReadonlyArray<{ readonly message: string }>;
  }>;
}

/** Violations of all rules, or of these; a line for each, with where they are. */
export const axeProblems = async (page: Page, rules: readonly string[] | null = null): Promise<string[]> => {
  const options = {
    resultTypes: ["violations"],
    ...(rules === null ? {} : { runOnly: { type: "rule", values: rules } }),
  };
  const run = `${SOURCE};axe.run(document, ${JSON.stringify(options)}).then(({ violations }) => violations)`;
  const violations = await page.evaluate<AxeViolation[]>(run);
  return violations.map(({ id, help, nodes }) => {
    const places = nodes
      .slice(0, NODES_SHOWN)
      .map(({ target, any }) => `${target.join(" ")} (${any?.[0]?.message ?? ""})`);
    return `axe ${id}: ${help}: ${nodes.length}× ${places.join("; ")}`;
  });
};

/** The rules whose result depends on the colour scheme. */
export const COLOUR_RULES = ["color-contrast", "link-in-text-block"] as const;
