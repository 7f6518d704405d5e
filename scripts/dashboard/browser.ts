/** Debian's chromium without windows of its own, and pages of it that report everything which a correct dashboard never does. */
import { readFileSync } from "node:fs";
import { XSS_MARK } from "./hostile.ts";
import { CHROMIUM } from "./service.ts";
import { type Browser, type BrowserContext, type Page, chromium } from "playwright-core";

/** A page takes milliseconds; a machine that tests everything at once takes its time. */
const STEP_MS_MAX = 30_000;

/** Nothing may leave this machine, whatever a page or the browser itself wants. */
const ARGUMENTS = [
  ...[
    "--no-sandbox",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
  ],
  ...["--disable-default-apps", "--disable-extensions", "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"],
];

export const launchBrowser = (): Promise<Browser> => chromium.launch({ executablePath: CHROMIUM, args: ARGUMENTS });

export interface VisitOptions {
  readonly hasScripts?: boolean;
  readonly scheme?: "light" | "dark";
  readonly width?: number;
  readonly cookies?: Parameters<BrowserContext["addCookies"]>[0];
}

/** Charts follow a change of the window's size. Text with white space needs nine characters a line; one of up to 16 characters without it stands on one. */
const FIND_MISFITS = `(async () => {
  await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
  const found = [];
  const { scrollWidth, clientWidth } = document.documentElement;
  if (scrollWidth > clientWidth) found.push(scrollWidth - clientWidth + " px wider than the window");
  const walker = document.createTreeWalker(document.querySelector("main"), NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const text = walker.currentNode.data.trim();
    if (text === "" || walker.currentNode.parentElement.closest("details:not([open]) > :not(summary)")) continue;
    const range = document.createRange();
    range.selectNodeContents(walker.currentNode);
    const rects = [...range.getClientRects()].filter(({ width }) => width > 1);
    const lines = new Set(rects.map(({ top }) => Math.round(top))).size;
    const isNarrow = lines >= 4 && text.length / lines < 9;
    const isBroken = lines >= 2 && text.length <= 16 && !/[\\s-]/.test(text);
    if (isNarrow || isBroken) found.push("squeezed into " + lines + " lines: " + text.slice(0, 60));
  }
  for (const table of document.querySelectorAll("main table")) {
    if (table.checkVisibility() === false || table.closest("details:not([open])")) continue;
    const name = table.caption?.textContent;
    const box = table.parentElement.getBoundingClientRect();
    const scrolls = table.parentElement.matches(".scroll");
    for (const cell of table.querySelectorAll("tbody td, tbody th")) {
      if (cell.textContent.trim() === "") continue;
      const { width, right, left } = cell.getBoundingClientRect();
      const isCut = !scrolls && (right > box.right + 1 || left < box.left - 1);
      if (width === 0 || isCut) found.push("a cell of a table is hidden: " + name + ": " + cell.textContent.slice(0, 40));
    }
  }
  return [...new Set(found)].slice(0, 20);
})()`;

const FIND_INJECTED = `[...document.querySelectorAll("*")]
  .filter((element) => [...element.attributes].some(({ name }) => /^on/i.test(name))
    || (element.tagName === "SCRIPT" && !element.src)
    || /^\\s*javascript:/i.test(element.getAttribute("href") ?? "")
    || (element.tagName === "IMG" && element.getAttribute("src") === "x")
    || (element.tagName === "B" && element.textContent === "${XSS_MARK}"))
  .map((element) => element.outerHTML.slice(0, 150))`;

export const DESKTOP = 1280;
export const TABLET = 1024;
export const PHONE = 390;
/** The windows in which every page has to fit. */
const WIDTHS = [1440, DESKTOP, TABLET, PHONE, 360];
const HEIGHT = 900;

/** One person at a browser: a context with its page, and what went wrong on it. */
export class Person {
  /** Violations of the policy, errors of scripts, dialogs, requests to other origins. */
  readonly problems: string[] = [];
  /** Responses of these statuses are expected: the console reports them as errors. */
  readonly expectedStatuses = new Set<number>();

  private constructor(
    readonly context: BrowserContext,
    readonly page: Page,
    readonly origin: string,
  ) {}

  static async open(browser: Browser, origin: string, options: VisitOptions = {}): Promise<Person> {
    const { hasScripts = true, scheme = "light", width = DESKTOP, cookies = [] } = options;
    const context = await browser.newContext({
      ...{
        javaScriptEnabled: hasScripts,
        colorScheme: scheme,
        viewport: { width, height: HEIGHT },
        reducedMotion: "reduce",
      },
      ...{ timezoneId: "Europe/Berlin", locale: "en-GB", baseURL: origin },
    });
    await context.addCookies(cookies);
    context.setDefaultTimeout(STEP_MS_MAX);
    const person = new Person(context, await context.newPage(), origin);
    person.#watch();
    return person;
  }

  async close(): Promise<void> {
    await this.context.close();
  }

  async goto(path: string): Promise<number> {
    const response = await this.page.goto(path, { waitUntil: "load" });
    return response?.status() ?? 0;
  }

  /** What the page shows, with white space folded. */
  async text(): Promise<string> {
    // As it is laid out: hidden parts are left out, which the text content would contain.
    const text = await this.page.evaluate<string>("document.querySelector('main').innerText");
    return text.replace(/\s+/g, " ");
  }

  /** Hostile text that became markup: handlers, scripts, and elements that only the hostile texts have. */
  async injected(): Promise<string[]> {
    const found = await this.page.evaluate<string[]>(FIND_INJECTED);
    return found.map((element) => `${new URL(this.page.url()).pathname}: unescaped ${element}`);
  }

  /**
   * What does not fit into one of the windows: a page that scrolls sideways, cells of tables that are hidden, texts of a few characters a
   * line, short words that are broken. Leaves the window at `DESKTOP`.
   */
  async misfits(): Promise<string[]> {
    const found: string[] = [];
    for (const width of WIDTHS) {
      await this.page.setViewportSize({ width, height: HEIGHT });
      const problems = await this.page.evaluate<string[]>(FIND_MISFITS);
      found.push(...problems.map((problem) => `at ${width} px: ${problem}`));
    }
    await this.page.setViewportSize({ width: DESKTOP, height: HEIGHT });
    return found;
  }

  #watch(): void {
    const { page, problems, origin } = this;
    const where = (): string => page.url().replace(origin, "");
    page.on("console", (message) => {
      if (message.type() !== "error" && !/content security policy/i.test(message.text())) return;
      const status = Number(/the server responded with a status of (\d+)/.exec(message.text())?.[1] ?? 0);
      if (!this.expectedStatuses.has(status))
        problems.push(`${where()}: console: ${message.text()} ${message.location().url}`);
    });
    page.on("pageerror", (error) => problems.push(`${where()}: script: ${error.message}`));
    page.on("dialog", (dialog) => {
      problems.push(`${where()}: dialog: ${dialog.message()}`);
      void dialog.dismiss();
    });
    page.on("requestfailed", (request) => {
      const reason = request.failure()?.errorText ?? "";
      if (request.isNavigationRequest() && reason !== "net::ERR_ABORTED")
        console.error(`${new Date().toISOString()} ${request.method()} ${request.url()} failed: ${reason}`);
    });
    page.on("request", (request) => {
      const url = request.url();
      if (!url.startsWith(`${origin}/`) && !url.startsWith("data:")) problems.push(`${where()}: request to ${url}`);
    });
  }
}

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
  const isThere = await page.evaluate<boolean>("'axe' in window");
  const run = `${isThere ? "" : SOURCE};axe.run(document, ${JSON.stringify(options)}).then(({ violations }) => violations)`;
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
