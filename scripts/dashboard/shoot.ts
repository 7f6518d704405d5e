/** Visits every page that links lead to, takes its pictures, and says what is wrong with it. */
import { join } from "node:path";
import { COLOUR_RULES, DESKTOP, PHONE, TABLET, Person, axeProblems, launchBrowser } from "./browser.ts";
import { signIn } from "./http-client.ts";
import { Frontier, PAGE_MAP, linksOf, placeOf } from "./places.ts";
import type { StageFacts } from "./stage.ts";
import type { Browser, CDPSession } from "playwright-core";

const BYTES_MAX = 150_000;
const PER_PLACE = 3;
/** Pages that no link leads to: after signing out, and errors. */
const VISITOR_PAGES = ["/sign-in", "/no-such-page"];

interface ShootOptions {
  readonly folder: string;
  /** Only places that contain this. */
  readonly only: string | null;
}

interface Visited {
  readonly target: string;
  readonly bytes: number;
  readonly problems: readonly string[];
}

/** Counts what goes over the wire while a page loads. */
class Wire {
  bytes = 0;

  private constructor(session: CDPSession) {
    session.on("Network.loadingFinished", ({ encodedDataLength }) => {
      this.bytes += encodedDataLength;
    });
  }

  /** Without cache, so that every visit is a first one. */
  static async of(person: Person): Promise<Wire> {
    const session = await person.context.newCDPSession(person.page);
    await session.send("Network.enable");
    await session.send("Network.setCacheDisabled", { cacheDisabled: true });
    return new Wire(session);
  }
}

const fileOf = (target: string, taken: Map<string, number>): string => {
  const name =
    placeOf(target)
      .replace(/^\//, "")
      .replace(/[{}]/g, "")
      .replace(/[^a-z0-9]+/gi, "-")
      .replace(/-$/, "") || "home";
  const count = (taken.get(name) ?? 0) + 1;
  taken.set(name, count);
  return count === 1 ? name : `${name}-${count}`;
};

class Photographer {
  readonly visited: Visited[] = [];
  readonly #taken = new Map<string, number>();

  constructor(
    private readonly person: Person,
    private readonly wire: Wire,
    private readonly folder: string,
  ) {}

  /** Visits a page in both schemes and five widths; its links. */
  async visit(target: string): Promise<readonly string[]> {
    const { page, problems } = this.person;
    const before = problems.length;
    this.wire.bytes = 0;
    await page.emulateMedia({ colorScheme: "light" });
    await page.setViewportSize({ width: DESKTOP, height: 900 });
    const status = await this.person.goto(target);
    const bytes = this.wire.bytes;
    const found: string[] = [];
    if (status >= 400 && !VISITOR_PAGES.includes(target)) found.push(`status ${status}`);
    if (bytes > BYTES_MAX) found.push(`${bytes} bytes over the wire`);
    const links = await linksOf(page);
    found.push(...(await this.#pictures(fileOf(target, this.#taken))), ...(await this.person.injected()));
    this.visited.push({ target, bytes, problems: [...found, ...problems.slice(before)] });
    return links;
  }

  async #pictures(name: string): Promise<string[]> {
    const { page } = this.person;
    const picture = (kind: string) =>
      page.screenshot({ path: join(this.folder, `${name}-${kind}.png`), fullPage: true, animations: "disabled" });
    const found = [...(await axeProblems(page)), ...(await this.person.misfits())];
    await picture("wide-light");
    await page.emulateMedia({ colorScheme: "dark" });
    found.push(...(await axeProblems(page, COLOUR_RULES)).map((problem) => `dark: ${problem}`));
    await picture("wide-dark");
    await page.setViewportSize({ width: TABLET, height: 900 });
    await picture("tablet-dark");
    await page.setViewportSize({ width: PHONE, height: 844 });
    await picture("phone-dark");
    await page.emulateMedia({ colorScheme: "light" });
    await picture("phone-light");
    found.push(...(await axeProblems(page)).map((problem) => `phone: ${problem}`));
    await page.setViewportSize({ width: TABLET, height: 900 });
    await picture("tablet-light");
    return found;
  }
}

const photograph = async (
  browser: Browser,
  facts: StageFacts,
  { folder, only }: ShootOptions,
): Promise<Photographer> => {
  const { owner } = facts.users;
  const client = await signIn(facts.url, { ...owner, password: facts.password });
  const person = await Person.open(browser, facts.url, { cookies: client.cookies() });
  person.expectedStatuses.add(404);
  const photographer = new Photographer(person, await Wire.of(person), folder);
  const frontier = new Frontier(PER_PLACE, ["/", "/test"]);
  for (let target = frontier.next(); target !== undefined; target = frontier.next()) {
    if (only !== null && !placeOf(target).includes(only)) {
      await person.goto(target);
      frontier.add(await linksOf(person.page));
      continue;
    }
    frontier.add(await photographer.visit(target));
  }
  await person.context.clearCookies();
  for (const target of VISITOR_PAGES) await photographer.visit(target);
  const missing = PAGE_MAP.filter((place) => !frontier.places.has(place));
  photographer.visited.push(...missing.map((target) => ({ target, bytes: 0, problems: ["no link leads here"] })));
  return photographer;
};

const README_WIDTH = 1_280;
const README_HEIGHT = 800;

const SHARE_PAGE = `<!doctype html><meta charset="utf-8"><style>
body{margin:0;width:1200px;height:630px;box-sizing:border-box;padding:0 96px;display:flex;align-items:center;gap:64px;
background:#f6f8f8;color:#14201f;font-family:system-ui,sans-serif;border-bottom:16px solid #0f8277}
svg{width:230px;flex:none}h1{font-size:92px;letter-spacing:-.03em;margin:0 0 18px}p{font-size:38px;line-height:1.35;margin:0;color:#55646a}
</style>MARK<div><h1>Postwarden</h1><p>Verifies addresses.<br>Monitors DMARC and blocklists.<br>One binary on your own machine.</p></div>`;

/** Takes the picture of the home page that the README shows, and the one that messengers show beside a link. */
export const shootReadme = async (
  facts: StageFacts,
  { page: path, share }: { readonly page: string; readonly share: string },
): Promise<number> => {
  const browser = await launchBrowser();
  try {
    const client = await signIn(facts.url, { ...facts.users.owner, password: facts.password });
    const { page } = await Person.open(browser, facts.url, { cookies: client.cookies() });
    await page.setViewportSize({ width: README_WIDTH, height: README_HEIGHT });
    await page.goto(facts.url);
    await page.screenshot({ path, animations: "disabled" });
    const mark = await Bun.file(join(import.meta.dir, "../../src/dashboard/assets/favicon.svg")).text();
    await page.setViewportSize({ width: 1_200, height: 630 });
    await page.setContent(SHARE_PAGE.replace("MARK", mark));
    await page.screenshot({ path: share });
    return 0;
  } finally {
    await browser.close();
  }
};

/** Takes the pictures, prints a line for each page, and returns the exit status. */
export const shoot = async (facts: StageFacts, options: ShootOptions): Promise<number> => {
  const browser = await launchBrowser();
  try {
    const { visited } = await photograph(browser, facts, options);
    for (const { target, bytes, problems } of visited) {
      console.log(`${problems.length === 0 ? "ok  " : "FAIL"} ${(bytes / 1_000).toFixed(0).padStart(4)} kB  ${target}`);
      for (const problem of problems) console.log(`       ${problem.slice(0, 900)}`);
    }
    const failed = visited.filter(({ problems }) => problems.length > 0).length;
    console.log(
      `${visited.length - failed} passed, ${failed} failed; largest ${Math.max(...visited.map(({ bytes }) => bytes))} bytes`,
    );
    return failed === 0 ? 0 : 1;
  } finally {
    await browser.close();
  }
};
