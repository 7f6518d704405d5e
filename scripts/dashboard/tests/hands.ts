/** How a person uses a page: with the mouse, without scripts, or with the keyboard alone. A journey is written once for all of them. */
import type { Locator, Page } from "playwright-core";
import type { Person } from "../browser.ts";
import type { UserName } from "./facts.ts";
import { signedIn, visit } from "./browser.ts";

const TABS_MAX = 250;
const SEEN_MS_MAX = 30_000;
const RELOAD_MS = 500;
const LOOK_EVERY_MS = 60;

/** Name of a way to use the pages, whether scripts run, and whether only keys are used. */
export const WAYS = [
  ["with the mouse", { hasScripts: true, isKeyboard: false }],
  ["without scripts", { hasScripts: false, isKeyboard: false }],
  ["by keyboard alone", { hasScripts: true, isKeyboard: true }],
] as const;

export type Way = (typeof WAYS)[number][1];

type Name = string | RegExp;

export class Hands {
  readonly page: Page;

  constructor(
    readonly person: Person,
    readonly way: Way,
  ) {
    this.page = person.page;
    // A form with a mistake is shown again with one of these.
    for (const status of [400, 409, 422]) person.expectedStatuses.add(status);
  }

  /** Signs in as one of the users, at a path. */
  static async of(name: UserName, way: Way, path: string): Promise<Hands> {
    const hands = new Hands(await signedIn(name, { hasScripts: way.hasScripts }), way);
    await hands.person.goto(path);
    return hands;
  }

  static async ofVisitor(way: Way, url: string, path: string): Promise<Hands> {
    const hands = new Hands(await visit({ hasScripts: way.hasScripts }, url), way);
    await hands.person.goto(path);
    return hands;
  }

  /** The path that is open. */
  get path(): string {
    return new URL(this.page.url()).pathname;
  }

  async press(name: Name, within: Locator | Page = this.page): Promise<void> {
    await this.#activate(within.getByRole("button", { name, exact: typeof name === "string" }));
  }

  async follow(name: Name, within: Locator | Page = this.page): Promise<void> {
    await this.#activate(within.getByRole("link", { name, exact: typeof name === "string" }));
  }

  /** Opens what is folded away. */
  async unfold(name: Name, within: Locator | Page = this.page): Promise<void> {
    await this.#activate(within.locator("summary").filter({ hasText: name }));
  }

  async fill(label: Name, text: string, within: Locator | Page = this.page): Promise<void> {
    const field = await this.#visible(within.getByLabel(label, { exact: typeof label === "string" }));
    if (!this.way.isKeyboard) return field.fill(text);
    await this.#tabTo(field);
    await this.page.keyboard.press("Control+A");
    await this.page.keyboard.insertText(text);
  }

  async choose(label: Name, option: string, within: Locator | Page = this.page): Promise<void> {
    const field = await this.#visible(within.getByLabel(label, { exact: typeof label === "string" }));
    if (!this.way.isKeyboard) return void (await field.selectOption({ label: option }));
    await this.#tabTo(field);
    await this.page.keyboard.type(option);
  }

  async tick(label: Name, within: Locator | Page = this.page): Promise<void> {
    const box = await this.#visible(within.getByLabel(label, { exact: typeof label === "string" }));
    if (!this.way.isKeyboard) return box.check();
    await this.#tabTo(box);
    await this.page.keyboard.press("Space");
  }

  async attach(label: Name, file: { name: string; mimeType: string; text: string }): Promise<void> {
    const { name, mimeType, text } = file;
    await this.page
      .getByLabel(label)
      .first()
      .setInputFiles({ name, mimeType, buffer: Buffer.from(text) });
  }

  /** Lets a file fall on the part of the page that takes files. */
  async drop({ name, mimeType, text }: { name: string; mimeType: string; text: string }): Promise<void> {
    const file = JSON.stringify({ name, mimeType, text });
    const transfer = await this.page.evaluateHandle(
      `(() => { const { name, mimeType, text } = ${file}; const data = new DataTransfer(); data.items.add(new File([text], name, { type: mimeType })); return data; })()`,
    );
    await this.page.dispatchEvent("[data-drop]", "drop", { dataTransfer: transfer });
  }

  /** Waits until the page says so. `reload`: as a person without scripts does who waits for news. */
  async sees(what: Name, { reload = false } = {}): Promise<string> {
    const endsAtMs = performance.now() + SEEN_MS_MAX;
    let text = "";
    // Not `waitForFunction`: it looks again by `eval`, which the content security policy of the pages forbids.
    while (performance.now() < endsAtMs) {
      // A page that is being replaced has no text for a moment.
      text = await this.person.text().catch(() => "");
      if (typeof what === "string" ? text.includes(what) : what.test(text)) return text;
      await Bun.sleep(reload ? RELOAD_MS : LOOK_EVERY_MS);
      if (reload) await this.page.reload();
    }
    throw new Error(`${this.page.url()} does not say ${what} but: ${text.slice(0, 1_500)}`);
  }

  /** The first of these that can be seen; fails with what the page says instead. */
  async #visible(locator: Locator): Promise<Locator> {
    const visible = locator.filter({ visible: true }).first();
    await visible.waitFor().catch(async () => {
      const text = await this.person.text().catch(() => "");
      throw new Error(`${this.page.url()} has no ${locator} but: ${text.slice(0, 1_500)}`);
    });
    return visible;
  }

  async #activate(locator: Locator): Promise<void> {
    const element = await this.#visible(locator);
    if (!this.way.isKeyboard) return element.click();
    await this.#tabTo(element);
    await this.page.keyboard.press("Enter");
  }

  /** Moves the focus with the tabulator; fails when it never gets there, or when one cannot see where it is. */
  async #tabTo(locator: Locator): Promise<void> {
    const isThere = () => locator.evaluate((element) => element === element.ownerDocument.activeElement);
    for (let n = 0; n < TABS_MAX; n++) {
      if (await isThere()) return this.#requireFocusRing(locator);
      await this.page.keyboard.press("Tab");
    }
    throw new Error(`${this.page.url()}: the focus does not reach ${locator}`);
  }

  async #requireFocusRing(locator: Locator): Promise<void> {
    const style = await locator.evaluate((element) => {
      const view = element.ownerDocument.defaultView;
      if (view === null) throw new Error("no window");
      const { outlineStyle, outlineWidth, boxShadow } = view.getComputedStyle(element);
      return { outlineStyle, outlineWidth, boxShadow };
    });
    const isSeen = (style.outlineStyle !== "none" && style.outlineWidth !== "0px") || style.boxShadow !== "none";
    if (!isSeen) throw new Error(`${this.page.url()}: the focus on ${locator} is invisible`);
  }
}
