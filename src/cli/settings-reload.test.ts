import { describe, expect, test } from "bun:test";
import { nextTurn } from "../foundation/base/clock.ts";
import { createLog } from "../foundation/base/log.ts";
import { type Environment, readConfig } from "../service/config.ts";
import { createTestClock } from "../testing/clock.ts";
import { UsageError } from "./io.ts";
import { Hangups, ReloadableSettings } from "./settings-reload.ts";

describe("Hangups", () => {
  const start = () => {
    const handlers: Array<() => void> = [];
    const hangups = new Hangups({ onHangup: (task) => void handlers.push(task) });
    return { hangups, hangUp: () => handlers[0]?.() };
  };

  test("a SIGHUP before the task is set runs it once it is set, however many there were", async () => {
    const { hangups, hangUp } = start();
    hangUp();
    hangUp();
    let runs = 0;
    hangups.use(async () => void runs++);
    await Promise.resolve();
    expect(runs).toBe(1);
  });

  test("without a SIGHUP the task does not run", () => {
    const { hangups } = start();
    let runs = 0;
    hangups.use(async () => void runs++);
    expect(runs).toBe(0);
  });

  test("the task never runs twice at once; a SIGHUP meanwhile runs it again afterwards", async () => {
    const { hangups, hangUp } = start();
    const releases: Array<() => void> = [];
    hangups.use(() => new Promise((resolve) => releases.push(resolve)));
    hangUp();
    hangUp();
    hangUp();
    expect(releases).toHaveLength(1);
    for (const running of [1, 0]) {
      releases.shift()?.();
      await nextTurn();
      expect(releases).toHaveLength(running);
    }
    hangUp();
    expect(releases).toHaveLength(1);
  });
});

describe("ReloadableSettings", () => {
  const configOf = (environment: Environment) => {
    const read = readConfig(environment);
    if (!read.ok) throw new Error(read.error.join(" "));
    return read.value;
  };

  const start = (before: Environment) => {
    let environment = (): Environment => before;
    const settings = new ReloadableSettings(configOf(before), () => environment());
    const reload = (after: Environment | Error) => {
      environment = () => {
        if (after instanceof Error) throw after;
        return after;
      };
      const lines: string[] = [];
      settings.reload(createLog("info", createTestClock(), (line) => void lines.push(line)));
      return lines.map((line) => {
        const { at: _, ...rest } = JSON.parse(line);
        return rest;
      });
    };
    return { settings, reload };
  };

  test("nothing changed: one line says so", () => {
    const { reload } = start({ POSTWARDEN_PORT: "0" });
    expect(reload({ POSTWARDEN_PORT: "0" })).toEqual([
      { level: "info", message: "settings were reloaded", changed: [] },
    ]);
  });

  test("log level and trusted proxies change; others are named as long as they wait for a restart, without their values", () => {
    const { settings, reload } = start({ POSTWARDEN_PORT: "0" });
    const after = {
      POSTWARDEN_LOG_LEVEL: "warn",
      POSTWARDEN_TRUSTED_PROXIES: "127.0.0.1",
      POSTWARDEN_PORT: "1",
      POSTWARDEN_BLOCKLIST_KEYS: "some-list=secret",
    };
    const waiting = {
      level: "warn",
      message: "changed settings need a restart",
      settings: ["POSTWARDEN_PORT", "POSTWARDEN_BLOCKLIST_KEYS"],
    };
    expect(reload(after)).toEqual([
      {
        level: "info",
        message: "settings were reloaded",
        changed: ["POSTWARDEN_TRUSTED_PROXIES", "POSTWARDEN_LOG_LEVEL"],
      },
      waiting,
    ]);
    expect(settings.logLevel).toBe("warn");
    expect(settings.trustedProxies).toEqual(configOf(after).trustedProxies);
    expect(reload(after)).toEqual([{ level: "info", message: "settings were reloaded", changed: [] }, waiting]);
  });

  test("an invalid setting or an unreadable file changes nothing", () => {
    const { settings, reload } = start({});
    expect(reload({ POSTWARDEN_LOG_LEVEL: "debug", POSTWARDEN_PORT: "x" })).toEqual([
      {
        level: "error",
        message: "settings were not reloaded; the old ones stay in use",
        problems: [expect.stringContaining("POSTWARDEN_PORT")],
      },
    ]);
    expect(reload(new UsageError("--env-file: /x: no such file"))).toMatchObject([
      { level: "error", problems: ["--env-file: /x: no such file"] },
    ]);
    expect(settings.logLevel).toBe("info");
    expect(() => reload(new Error("a bug"))).toThrow("a bug");
  });
});
