import { isMet, type Mark } from "../bench/marks.ts";
import { type Attack, type AttackContext, type Finding, pause } from "./attack.ts";
import { type MemoryGroup, openMemoryGroup } from "./cgroup.ts";
import type { ServerAddresses, Watcher } from "./children.ts";
import { createConnections } from "./connections.ts";
import { countProblems, percentile, problemsOf, type Sample, type Seen } from "./samples.ts";
import { newDataDir } from "../bench/stage.ts";
import { createKeys, removeDirectory, type Service, startService } from "./service.ts";

/** The memory that the service may use, in bytes. */
export const MEMORY_BYTES_MAX = 512 * 1024 * 1024;
const MB = 1_000_000;

const WARM_UP_MS = 1_500;
const IDLE_TRIES_MAX = 4;
const ATTACKED_MS_MIN = 5_000;
/** How long an attack may go on after its time, before it is left alone. */
const LATE_MS_MAX = 5_000;

/** What is demanded of times. */
export interface Limits {
  readonly healthzMs: number;
  /** How many times its idle time a check may take, and the least idle time that is believed. */
  readonly checkFactor: number;
  readonly idleMsMin: number;
  /** For how long idle times are measured. */
  readonly idleMs: number;
}

export const LIMITS: Limits = { healthzMs: 100, checkFactor: 2, idleMsMin: 25, idleMs: 4_000 };
/** For a machine that others work on as well: what matters is that the service survives and goes on answering. */
export const QUICK_LIMITS: Limits = { healthzMs: 2_500, checkFactor: 40, idleMsMin: 50, idleMs: 1_500 };

export interface SiegeDeps {
  readonly binary: string;
  readonly directory: string;
  readonly servers: ServerAddresses;
  readonly watcher: Watcher;
  readonly children: Set<Bun.Subprocess>;
  readonly limits: Limits;
  /** Aborted when the siege is interrupted. */
  readonly interrupted: AbortSignal;
}

/** Waits while the watcher measures. */
const watch = async (
  deps: SiegeDeps,
  context: Pick<AttackContext, "service" | "keys">,
  work: () => Promise<void>,
): Promise<Seen> => {
  deps.watcher.begin({
    ...{ url: context.service.url, controlUrl: deps.servers.controlUrl },
    keys: context.keys.other.live,
  });
  await work();
  return deps.watcher.end();
};

/** Runs the attack, until it ends or its time is up; what it throws is a finding. */
const runAttack = async (
  attack: () => Promise<readonly Finding[]>,
  signal: AbortSignal,
): Promise<readonly Finding[]> => {
  const late = Promise.withResolvers<readonly Finding[]>();
  const failed = (note: string): readonly Finding[] => [
    { what: "the attack itself", value: null, unit: "", limit: { most: 0 }, note },
  ];
  let timer: Timer | undefined;
  const end = (): void => {
    timer = setTimeout(() => late.resolve(failed("did not end in time")), LATE_MS_MAX);
  };
  if (signal.aborted) end();
  else signal.addEventListener("abort", end);
  try {
    return await Promise.race([attack(), late.promise]);
  } catch (error) {
    return failed(error instanceof Error ? error.message : String(error));
  } finally {
    signal.removeEventListener("abort", end);
    clearTimeout(timer);
  }
};

const timesOf = (idle: Seen, attacked: Seen, limits: Limits): Finding[] => {
  const of = (samples: readonly Sample[], share: number) => percentile(samples, share);
  const idleNote = (pick: (seen: Seen) => readonly Sample[], share: number): string =>
    `idle ${of(pick(idle), share).toFixed(1)} ms`;
  const healthz = (name: string, share: number): Finding => ({
    ...{ what: `/healthz ${name}`, unit: "ms", limit: { most: limits.healthzMs } },
    value: of(attacked.healthz, share),
    note: `${idleNote((seen) => seen.healthz, share)}; idle server meanwhile ${of(attacked.control, share).toFixed(1)} ms`,
  });
  const check = (name: string, share: number): Finding => ({
    ...{ what: `check ${name}`, unit: "ms", value: of(attacked.checks, share) },
    limit: { most: Math.round(limits.checkFactor * Math.max(limits.idleMsMin, of(idle.checks, share))) },
    note: `${idleNote((seen) => seen.checks, share)}, ${attacked.checks.length} checks`,
  });
  const wrong = (what: string, samples: readonly Sample[]): Finding => ({
    ...{ what, value: countProblems(samples), unit: "", limit: { most: 0 } },
    note: problemsOf(samples),
  });
  return [
    healthz("p99", 0.99),
    healthz("max", 1),
    wrong("/healthz without a 200", attacked.healthz),
    check("median", 0.5),
    check("p95", 0.95),
    wrong("checks without the right verdict", attacked.checks),
  ];
};

const memoryOf = (service: Service, group: MemoryGroup): Finding[] => {
  const { kills } = group.read();
  const { residentBytes, anonymousBytes } = service.peaks();
  const isRunning = service.state() === "running" ? 0 : 1;
  const note = `${service.state()}${kills > 0 ? `, ${kills} out-of-memory kills` : ""}`;
  // Pages of the executable are resident, but the group pays for them only if it was the first to read them.
  const usedBytes = group.isLimited ? anonymousBytes : residentBytes;
  return [
    { what: "processes lost", value: Math.max(isRunning, kills), unit: "", limit: { most: 0 }, note },
    {
      ...{ what: `${group.isLimited ? "anonymous" : "resident"} memory at most`, value: Math.round(usedBytes / MB) },
      ...{ unit: "MB", limit: { most: Math.floor(MEMORY_BYTES_MAX / MB) } },
      note: `resident ${Math.round(residentBytes / MB)} MB`,
    },
  ];
};

/** Idle times; measured again when the machine was busy with something else. */
const measureIdle = async (deps: SiegeDeps, context: AttackContext): Promise<Seen> => {
  for (let tries = 1; ; tries++) {
    const idle = await watch(deps, context, () => pause(context, deps.limits.idleMs));
    const isQuiet = percentile(idle.healthz, 0.99) <= deps.limits.healthzMs / 3;
    if (isQuiet || tries === IDLE_TRIES_MAX || context.signal.aborted) return idle;
  }
};

const measureAttack = async (deps: SiegeDeps, attack: Attack, group: MemoryGroup): Promise<readonly Finding[]> => {
  const { limits, children, binary, servers } = deps;
  const dataDir = await newDataDir(deps, attack.name);
  const keys = createKeys(dataDir);
  await attack.seed?.({ binary, dataDir, keys, servers, children });
  const server = attack.open?.() ?? null;
  const settings = { ...attack.settings, ...server?.settings };
  const service = await startService({ binary, dataDir, servers, group, children, settings }).catch((error) => {
    server?.close();
    throw error;
  });
  const connections = createConnections();
  const over = new AbortController();
  try {
    const signal = AbortSignal.any([deps.interrupted, service.dead, over.signal]);
    const context: AttackContext = {
      ...{ service, keys, dataDir, connections, signal },
      countOfServer: server?.count ?? (() => 0),
    };
    const attackNow = await attack.prepare(context);
    await watch(deps, context, () => pause(context, WARM_UP_MS));
    const idle = await measureIdle(deps, context);
    const timer = setTimeout(() => over.abort(), attack.seconds * 1000);
    let findings: readonly Finding[] = [];
    const attacked = await watch(deps, context, async () => {
      const least = pause(context, ATTACKED_MS_MIN);
      findings = await runAttack(attackNow, signal);
      clearTimeout(timer);
      await least;
    });
    return [...memoryOf(service, group), ...timesOf(idle, attacked, limits), ...findings];
  } finally {
    over.abort();
    connections.closeAll();
    await service.stop();
    server?.close();
    await removeDirectory(dataDir);
  }
};

/** One attack on a service of its own, with limited memory; what was found beside its limits. */
export const runOne = async (deps: SiegeDeps, attack: Attack): Promise<readonly Mark[]> => {
  const group = openMemoryGroup(MEMORY_BYTES_MAX);
  try {
    const findings = await measureAttack(deps, attack, group);
    return findings.map((finding) => ({ group: attack.name, ...finding }));
  } catch (error) {
    const note = error instanceof Error ? error.message : String(error);
    return [{ group: attack.name, what: "the whole attack", value: null, unit: "", limit: { most: 0 }, note }];
  } finally {
    group.remove();
  }
};

/** `N passed, M failed` of all figures that have a limit. */
export const scoreOf = (marks: readonly Mark[]): { readonly passed: number; readonly failed: number } => ({
  passed: marks.filter((mark) => isMet(mark) === true).length,
  failed: marks.filter((mark) => isMet(mark) === false).length,
});
