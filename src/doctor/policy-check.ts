import { connect } from "node:net";
import type { Clock } from "../foundation/base/clock.ts";
import { isInNetworks, parseCidrs, parseIp } from "../foundation/base/cidr.ts";
import { err, errorCode, errorText, ok, type Result } from "../foundation/base/errors.ts";
import { formatPolicyAddress, type PolicyAddress } from "../verify/policy/policy-settings.ts";
import { findNamedAccount, type StoredAccount } from "./accounts-check.ts";
import { type DoctorCheck, doctorFindings } from "./doctor-check.ts";
import type { DoctorSettings } from "./doctor-settings.ts";

const policyCheck = doctorFindings("policy", "Policy service for outgoing mail", "outgoing-mail#settings");

export interface PolicyCheckOptions {
  readonly config: Pick<DoctorSettings, "policyListen" | "policyNetworks" | "policyAccount">;
  readonly clock: Clock;
  readonly readAccounts: () => readonly StoredAccount[] | null;
}

const TIMEOUT_MS = 2_000;
/** A state at which no recipient is looked up or verified. */
const QUESTION = "request=smtpd_access_policy\nprotocol_state=CONNECT\n\n";

/** Whether mail servers get answers about recipients, and from whose results. Empty when no address is set. Never rejects. */
export const checkPolicy = async (options: PolicyCheckOptions): Promise<readonly DoctorCheck[]> => {
  const { policyListen: at, policyNetworks } = options.config;
  if (at === null) return [];
  const problem = accountProblem(options);
  if (problem !== null) return [policyCheck.fail(`${problem} Until then every recipient passes.`)];
  const where = formatPolicyAddress(at);
  const asked = await ask(at, options.clock);
  if (!asked.ok)
    return [
      policyCheck.warn(
        `Nothing answers on ${where} (${asked.error}). Start \`postwarden serve\`. Until then mail flows.`,
      ),
    ];
  const isLocal = "path" in at || isInNetworks(parseCidrs(["127.0.0.0/8", "::1/128"]), parseIp(at.address));
  return [
    isLocal || policyNetworks.length > 0
      ? policyCheck.ok(`The policy service answers on ${where}.`)
      : policyCheck.warn(
          `The policy service answers on ${where}, but only this machine. Set POSTWARDEN_POLICY_NETWORKS to the networks of your mail servers, or listen on 127.0.0.1.`,
        ),
  ];
};

/** Why no account answers; null when one does, or when the database cannot be read. */
const accountProblem = ({ config: { policyAccount: name }, readAccounts }: PolicyCheckOptions): string | null => {
  const accounts = readAccounts();
  if (accounts === null) return null;
  const account = findNamedAccount("POSTWARDEN_POLICY_ACCOUNT", name, accounts);
  if (typeof account === "string") return account;
  return account.isDisabled === 0 ? null : `The account "${account.name}" is disabled. Enable it, or name another one.`;
};

/** Asks a question about no recipient. The error is in words. */
const ask = (at: PolicyAddress, clock: Clock): Promise<Result<void, string>> => {
  const { promise, resolve } = Promise.withResolvers<Result<void, string>>();
  const socket = connect("path" in at ? at : { host: hostOf(at.address), port: at.port });
  const cancel = clock.after(TIMEOUT_MS, () => resolve(err(`no answer within ${TIMEOUT_MS / 1_000} seconds`)));
  socket.on("error", (error) => resolve(err(errorCode(error) || errorText(error))));
  socket.on("close", () => resolve(err("the connection was closed")));
  socket.once("data", (bytes) =>
    resolve(bytes.toString().startsWith("action=") ? ok(undefined) : err("another program listens there")),
  );
  socket.write(QUESTION);
  return promise.finally(() => {
    cancel();
    socket.destroy();
  });
};

const hostOf = (address: string): string => (address === "0.0.0.0" ? "127.0.0.1" : address === "::" ? "::1" : address);
