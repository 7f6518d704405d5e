/** A world with a service in it whose story has been told, in a directory of its own. */
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DashboardService, ensureBinary } from "./service.ts";
import { PASSWORD, Story, type Told, USERS } from "./story.ts";
import { World, startControl } from "./world.ts";

/** What a test needs to know; JSON, because tests run in a process of their own. */
export interface StageFacts {
  readonly url: string;
  /** A service that was started a moment ago for the first time, and what it printed. */
  readonly fresh: { readonly url: string; readonly greeting: string };
  readonly control: string;
  readonly users: typeof USERS;
  readonly password: string;
  readonly keys: Told;
}

const EXIT_INTERRUPTED = 130;

export class Stage {
  readonly #directory = mkdtempSync(join(tmpdir(), "postwarden-dashboard-"));
  readonly #closing: Array<() => Promise<void> | void> = [
    () => rmSync(this.#directory, { recursive: true, force: true }),
  ];

  /** Opens a stage for `work` and closes it afterwards, also after SIGINT and SIGTERM; the exit status. */
  static async use(perDay: number, work: (facts: StageFacts, stage: Stage) => Promise<number>): Promise<number> {
    ensureBinary();
    const stage = new Stage();
    const interrupted = Promise.withResolvers<number>();
    for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
      process.on(signal, () => interrupted.resolve(EXIT_INTERRUPTED));
    }
    const working = stage.#open(perDay).then((facts) => work(facts, stage));
    try {
      return await Promise.race([working, interrupted.promise]);
    } finally {
      working.catch(() => undefined);
      await stage.#close();
    }
  }

  /** Ends something with the stage; what was added last ends first. */
  onClose(close: () => Promise<void> | void): void {
    this.#closing.unshift(close);
  }

  async #open(perDay: number): Promise<StageFacts> {
    const world = new World();
    await world.start();
    this.onClose(() => world.stop());
    const service = this.#newService(world, "told");
    const startedMs = performance.now();
    console.error("Telling the story of ninety days …");
    const keys = await new Story(service, world, perDay).tell().catch((error: unknown) => {
      console.error(service.log().split("\n").slice(-20).join("\n"));
      throw error;
    });
    console.error(`… in ${Math.round((performance.now() - startedMs) / 1_000)} s.`);
    const fresh = this.#newService(world, "fresh");
    const { url, printed } = await fresh.start();
    const control = startControl(world);
    this.onClose(() => control.stop());
    const greeting = { url, greeting: printed() };
    return { url: service.url, fresh: greeting, control: control.url, users: USERS, password: PASSWORD, keys };
  }

  #newService(world: World, name: string): DashboardService {
    const directory = join(this.#directory, name);
    mkdirSync(directory, { mode: 0o700 });
    const service = new DashboardService(directory, world.settings(directory, name === "told"));
    this.onClose(() => service.stop());
    return service;
  }

  async #close(): Promise<void> {
    for (const close of this.#closing) await close();
  }
}
