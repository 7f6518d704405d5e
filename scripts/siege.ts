/**
 * `npm run siege`: attacks the binary inside a memory limit of 512 MiB, and measures what its other users notice. `--only
 * NAME` (several times, too) runs those attacks alone, `--quick` those that threaten its life, with generous limits on
 * times, `--binary PATH` takes another binary whose database has
 * the same form. Exits with 1 when a limit is missed. Linux only; best as root.
 */
import { join, resolve } from "node:path";
import { type Mark, marksText } from "./bench/marks.ts";
import type { Attack } from "./siege/attack.ts";
import { agentAttacks } from "./siege/attacks-agents.ts";
import { bounceAttacks } from "./siege/attacks-bounces.ts";
import { formAttacks } from "./siege/attacks-forms.ts";
import { imapAttacks } from "./siege/attacks-imap.ts";
import { listAttacks } from "./siege/attacks-lists.ts";
import { memoryAttacks } from "./siege/attacks-memory.ts";
import { operatingAttacks } from "./siege/attacks-operating.ts";
import { outgoingAttacks } from "./siege/attacks-outgoing.ts";
import { reportAttacks } from "./siege/attacks-reports.ts";
import { requestAttacks } from "./siege/attacks-requests.ts";
import { signInAttacks } from "./siege/attacks-sign-in.ts";
import { webhookAttacks } from "./siege/attacks-webhooks.ts";
import { openMemoryGroup } from "./siege/cgroup.ts";
import { startServers, startWatcher } from "./siege/children.ts";
import { newDirectory, removeDirectory } from "./siege/service.ts";
import { LIMITS, MEMORY_BYTES_MAX, QUICK_LIMITS, runOne, scoreOf } from "./siege/siege.ts";
import { readOptions } from "./harness/options.ts";

const ROOT = resolve(import.meta.dir, "..");
const EXIT_INTERRUPTED = 130;
const ATTACKS: readonly Attack[] = [
  ...reportAttacks,
  ...memoryAttacks,
  ...requestAttacks,
  ...listAttacks,
  ...webhookAttacks,
  ...imapAttacks,
  ...outgoingAttacks,
  ...operatingAttacks,
  ...signInAttacks,
  ...agentAttacks,
  ...bounceAttacks,
  ...formAttacks,
];

const { values: options } = readOptions(import.meta.path, {
  options: {
    only: { type: "string", multiple: true },
    quick: { type: "boolean", default: false },
    binary: { type: "string" },
  },
});

const wantedAttacks = (): readonly Attack[] => {
  const names = ATTACKS.map(({ name }) => name);
  const unknown = (options.only ?? []).filter((name) => !names.includes(name));
  if (unknown.length > 0) throw new Error(`Unknown attack ${unknown.join(", ")}. There are: ${names.join(", ")}`);
  return ATTACKS.filter(({ name, isQuick }) => options.only?.includes(name) ?? (!options.quick || isQuick));
};

const sayLimit = (): void => {
  const group = openMemoryGroup(MEMORY_BYTES_MAX);
  group.remove();
  console.error(
    group.isLimited
      ? `The service is limited to 512 MiB by ${group.kind}.`
      : `No memory limit can be set (${group.kind}). The resident memory is compared with 512 MiB instead.`,
  );
};

const work = async (directory: string, children: Set<Bun.Subprocess>, interrupted: AbortSignal): Promise<number> => {
  const binary = resolve(options.binary ?? join(ROOT, "dist/postwarden"));
  if (!(await Bun.file(binary).exists())) throw new Error(`${binary}: no such file. Run: npm run build`);
  const attacks = wantedAttacks();
  sayLimit();
  const [servers, watcher] = await Promise.all([startServers(children, directory), startWatcher(children)]);
  const limits = options.quick ? QUICK_LIMITS : LIMITS;
  const deps = { binary, directory, servers, watcher, children, limits, interrupted };
  const marks: Mark[] = [];
  for (const attack of attacks) {
    if (interrupted.aborted) break;
    console.error(`${attack.name}: ${attack.about} …`);
    const found = await runOne(deps, attack);
    console.error(`${attack.name}: ${scoreOf(found).failed} failed`);
    marks.push(...found);
  }
  if (interrupted.aborted) return EXIT_INTERRUPTED;
  const { passed, failed } = scoreOf(marks);
  console.log(marksText(marks));
  console.log(`${passed} passed, ${failed} failed`);
  return failed === 0 ? 0 : 1;
};

const main = async (): Promise<number> => {
  const interrupted = new AbortController();
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => interrupted.abort());
  const directory = await newDirectory();
  const children = new Set<Bun.Subprocess>();
  try {
    return await work(directory, children, interrupted.signal);
  } catch (error) {
    console.error(error instanceof Error ? error.message : String(error));
    return 1;
  } finally {
    for (const child of children) child.kill("SIGKILL");
    await Promise.all([...children].map((child) => child.exited));
    await removeDirectory(directory);
  }
};

process.exit(await main());
