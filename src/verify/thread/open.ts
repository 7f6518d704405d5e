import type { Log } from "../../foundation/base/log.ts";
import type { ByMode } from "../../foundation/base/secrets.ts";
import type { Platform } from "../../foundation/net/platform.ts";
import { classifyAddress } from "../address-evidence.ts";
import { type Attempts, OwnAttempts } from "../attempts.ts";
import { VerificationEngine } from "../engine.ts";
import type { LoopDelay, ServiceEngine, VerifySettings } from "../open.ts";
import { EgressPool, egressesOf } from "../smtp/open.ts";
import { TEST_PLATFORM } from "../test-platform.ts";
import { EngineThread, type EngineThreadDeps } from "./engine-thread.ts";
import { type EngineState, IDLE_STATE } from "./messages.ts";

export interface ThreadedEngineDeps extends Pick<EngineThreadDeps, "start" | "matchSuppression" | "noteNetwork"> {
  readonly log: Log;
}

const elsewhere = () => Promise.reject(new Error("this thread sends nothing to DNS and mail servers"));

/** The engine in a thread of its own. Here are test keys, and what needs no network: the begin and the failure of an attempt. */
export class ThreadedEngine implements ServiceEngine {
  readonly engines: ByMode<VerificationEngine>;
  readonly attempts: ByMode<Attempts>;
  readonly smtp: EngineThread["smtp"];
  readonly #thread: EngineThread;

  constructor(platform: Pick<Platform, "clock" | "connector">, settings: VerifySettings, deps: ThreadedEngineDeps) {
    const { clock } = platform;
    const live = new VerificationEngine(
      {
        classify: classifyAddress,
        matchSuppression: null,
        lookUpDomain: elsewhere,
        probeMailbox: elsewhere,
        checkBlocklists: null,
        retryWaitsS: settings.retryWaitsS,
        judgeOutage: elsewhere,
        simulation: null,
      },
      clock,
    );
    const test = new VerificationEngine(TEST_PLATFORM, clock);
    const egresses = new EgressPool(egressesOf(settings, platform), clock).states();
    const idle: EngineState = { ...IDLE_STATE, egresses };
    this.#thread = new EngineThread({ ...deps, clock, idle, own: new OwnAttempts(live) });
    this.smtp = this.#thread.smtp;
    this.engines = { live, test };
    this.attempts = { live: this.#thread, test: new OwnAttempts(test) };
  }

  loopDelay(): LoopDelay | null {
    return this.smtp.loopDelay();
  }

  drain(): Promise<void> {
    return this.#thread.drain();
  }

  close(): void {
    this.#thread.close();
  }
}
