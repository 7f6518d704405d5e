import { chmodSync, lstatSync, rmSync } from "node:fs";
import { createServer, connect, type Server, type Socket } from "node:net";
import { canonicalIp, clientKey, isInNetworks, parseCidrs, parseIp } from "../../foundation/base/cidr.ts";
import type { Clock } from "../../foundation/base/clock.ts";
import { err, errorCode, errorText, ok, type Result } from "../../foundation/base/errors.ts";
import { backgroundTurn } from "../../foundation/base/fair-queue.ts";
import type { Log } from "../../foundation/base/log.ts";
import { formatPolicyAddress, type PolicyAddress } from "./policy-settings.ts";
import { PolicySession } from "./policy-session.ts";
import { POLICY_PROBLEMS, type PolicyProblem, type PolicyQuestion } from "./protocol.ts";
import { DUNNO, type PolicyAnswer, type RecipientPolicy } from "./recipient-policy.ts";

/** Why a connection was refused or ended. */
export const POLICY_REFUSALS = [...POLICY_PROBLEMS, "timeout", "network", "too_many"] as const;
type PolicyRefusal = (typeof POLICY_REFUSALS)[number];

export interface PolicyListenerDeps {
  readonly clock: Clock;
  readonly log: Log;
  readonly policy: Pick<RecipientPolicy, "answer">;
  /** Networks (CIDR) that may connect, beside this machine. */
  readonly networks: readonly string[];
  /** Called with each answer, and the seconds that it took. */
  readonly answered: (decision: PolicyAnswer["decision"], seconds: number) => void;
  readonly refused: (refusal: PolicyRefusal) => void;
  /** Connections at a time, and those of one other machine. */
  readonly connectionsMax?: number;
  readonly connectionsPerClientMax?: number;
}

/** Postfix has 100 processes for SMTP by default, each with one connection. */
const CONNECTIONS_MAX = 500;
const CONNECTIONS_PER_CLIENT_MAX = 150;
/** A connection idle for less time does not give way to a new one. */
const EVICTABLE_AFTER_MS = 1_000;
const THIS_MACHINE = ["127.0.0.0/8", "::1/128"];
/** Who may write to a Unix socket: the users of mail servers differ, and a port of this machine is open to all of them. */
const SOCKET_MODE = 0o666;
/** Refused clients are logged once in this time. */
const LOG_AGAIN_MS = 60_000;

interface OpenSession {
  readonly session: PolicySession;
  readonly source: string;
}

/** Answers mail servers that ask about recipients: Postfix's policy delegation protocol, and one line for Exim. */
export class PolicyListener {
  readonly #sessions = new Set<OpenSession>();
  readonly #networks;
  readonly #localNetworks = parseCidrs(THIS_MACHINE);
  #server: Server | null = null;
  #path: string | null = null;
  #loggedMs = Number.NEGATIVE_INFINITY;

  constructor(private readonly deps: PolicyListenerDeps) {
    this.#networks = [...this.#localNetworks, ...parseCidrs(deps.networks)];
  }

  get connections(): number {
    return this.#sessions.size;
  }

  /** Begins to listen, and returns where; port 0 is any free one. The error is a sentence. Call once. */
  async listen(at: PolicyAddress): Promise<Result<PolicyAddress, string>> {
    if ("path" in at && !(await removeUnused(at.path)))
      return err(whyNot(at, "another program listens there, or it is not a socket"));
    const server = createServer({ allowHalfOpen: true, noDelay: true }, (socket) => this.#accept(socket, "path" in at));
    const bound = await new Promise<Result<void, string>>((resolve) => {
      server.once("error", (error) => resolve(err(whyNot(at, REASONS[errorCode(error)] ?? errorText(error)))));
      server.listen("path" in at ? { path: at.path } : { host: at.address, port: at.port }, () =>
        resolve(ok(undefined)),
      );
    });
    if (!bound.ok) return bound;
    server.on("error", (error) => this.deps.log.error("the policy service failed", { error }));
    this.#server = server;
    if ("path" in at) {
      this.#path = at.path;
      chmodSync(at.path, SOCKET_MODE);
      return ok(at);
    }
    const address = server.address();
    return ok({ ...at, port: typeof address === "object" && address !== null ? address.port : at.port });
  }

  /** Ends everything at once: mail servers go on without an answer. */
  close(): void {
    this.#server?.close();
    for (const { session } of [...this.#sessions]) session.close();
    if (this.#path !== null) rmSync(this.#path, { force: true });
    this.#path = null;
  }

  #accept(socket: Socket, isUnix: boolean): void {
    const source = isUnix ? "unix" : (canonicalIp(socket.remoteAddress?.split("%", 1)[0] ?? "") ?? "");
    const refusal = this.#refusalOf(source, isUnix);
    if (refusal !== null) {
      socket.on("error", () => undefined);
      socket.destroy();
      this.#refuse(refusal, source);
      return;
    }
    const onClosed = (problem: PolicyProblem | "timeout" | null) => {
      this.#sessions.delete(opened);
      if (problem !== null) this.#refuse(problem, source);
    };
    const answer = (question: PolicyQuestion) => this.#answer(question, source);
    const turn = () => backgroundTurn(`policy ${clientKey(source)}`);
    const opened: OpenSession = {
      session: new PolicySession(socket, { clock: this.deps.clock, answer, turn, onClosed }),
      source: clientKey(source),
    };
    this.#sessions.add(opened);
  }

  /** Why a connection is refused; null when there is room for it. */
  #refusalOf(source: string, isUnix: boolean): "network" | "too_many" | null {
    const { connectionsMax = CONNECTIONS_MAX, connectionsPerClientMax = CONNECTIONS_PER_CLIENT_MAX } = this.deps;
    const ip = parseIp(source);
    if (!isUnix && !isInNetworks(this.#networks, ip)) return "network";
    const isLocal = isUnix || isInNetworks(this.#localNetworks, ip);
    const key = clientKey(source);
    const ofClient = [...this.#sessions].filter((one) => one.source === key).length;
    const isFull = this.#sessions.size >= connectionsMax || (!isLocal && ofClient >= connectionsPerClientMax);
    return !isFull || this.#endLongestIdle(isLocal || ofClient < connectionsPerClientMax ? null : key)
      ? null
      : "too_many";
  }

  /** Ends the connection that has been idle longest, of one client or with null of all; false when none has been long enough. */
  #endLongestIdle(source: string | null): boolean {
    const latestMs = this.deps.clock.monotonicMs() - EVICTABLE_AFTER_MS;
    const [longest] = [...this.#sessions]
      .filter((one) => source === null || one.source === source)
      .map(({ session }) => ({ session, sinceMs: session.idleSinceMs ?? Number.POSITIVE_INFINITY }))
      .filter(({ sinceMs }) => sinceMs <= latestMs)
      .toSorted((a, b) => a.sinceMs - b.sinceMs);
    longest?.session.close();
    return longest !== undefined;
  }

  #answer({ recipient }: PolicyQuestion, source: string): string {
    const startedMs = this.deps.clock.monotonicMs();
    const { decision, action } = recipient === null ? DUNNO : this.deps.policy.answer(recipient, source);
    this.deps.answered(decision, (this.deps.clock.monotonicMs() - startedMs) / 1_000);
    return action;
  }

  #refuse(refusal: PolicyRefusal, source: string): void {
    this.deps.refused(refusal);
    const nowMs = this.deps.clock.monotonicMs();
    if (nowMs - this.#loggedMs < LOG_AGAIN_MS) return;
    this.#loggedMs = nowMs;
    this.deps.log.warn("a connection to the policy service was closed", { reason: refusal, client: source });
  }
}

const REASONS: Readonly<Record<string, string>> = {
  EADDRINUSE: "another program listens there",
  EACCES: "this user may not listen there",
  EADDRNOTAVAIL: "this machine has no such address",
  ENOENT: "the directory does not exist",
};

const whyNot = (at: PolicyAddress, reason: string): string =>
  `The policy service cannot listen on ${formatPolicyAddress(at)}: ${reason}.`;

/** Removes a socket that nobody listens on any more; false when something else is there. */
const removeUnused = async (path: string): Promise<boolean> => {
  const found = lstatSync(path, { throwIfNoEntry: false });
  if (found === undefined) return true;
  if (!found.isSocket() || (await isListening(path))) return false;
  rmSync(path, { force: true });
  return true;
};

const isListening = (path: string): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect({ path });
    socket.once("connect", () => {
      socket.destroy();
      resolve(true);
    });
    socket.once("error", () => resolve(false));
  });
