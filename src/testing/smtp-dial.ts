import { afterEach } from "bun:test";
import { type Clock, systemClock } from "../foundation/base/clock.ts";
import type { Result } from "../foundation/base/errors.ts";
import { createDirectConnector } from "../foundation/net/connector.ts";
import { openSession, type SmtpSessionOptions } from "../foundation/net/smtp-client.ts";
import type { SmtpFailure } from "../foundation/net/smtp-failure.ts";
import type { SmtpSession } from "../foundation/net/smtp-session.ts";
import { type SmtpStub, type SmtpStubScript, startSmtpStub } from "./smtp-stub.ts";

/** The timeouts of `dialStub` by default: on a test clock, exact; on the system clock, never reached. */
export const DIAL_CONNECT_TIMEOUT_MS = 90_000;
export const DIAL_REPLY_TIMEOUT_MS = 30_000;

/** Opens a session with a stub, as `mx.example.test`, by the system clock unless another is given. */
export const dialStub = (
  stub: SmtpStub,
  overrides: Partial<SmtpSessionOptions> & { readonly clock?: Clock } = {},
): Promise<Result<SmtpSession, SmtpFailure>> => {
  const clock = overrides.clock ?? systemClock;
  return openSession({
    connector: createDirectConnector({ clock, mayConnect: () => true }),
    clock,
    address: stub.hostname,
    port: stub.port,
    serverName: "mx.example.test",
    heloName: "probe.example",
    connectTimeoutMs: DIAL_CONNECT_TIMEOUT_MS,
    replyTimeoutMs: DIAL_REPLY_TIMEOUT_MS,
    ...overrides,
  });
};

/** The session of `dialStub`, where the test has no doubt that it opens. */
export const dialOpen = async (
  stub: SmtpStub,
  overrides: Partial<SmtpSessionOptions> & { readonly clock?: Clock } = {},
): Promise<SmtpSession> => {
  const session = await dialStub(stub, overrides);
  if (!session.ok) throw new Error(`no session: ${session.error.stage} ${session.error.kind}`);
  return session.value;
};

/** Starts stubs for the tests of one file, and stops them after each test. */
export const createStubs = (): ((script?: SmtpStubScript) => SmtpStub) => {
  const stubs: SmtpStub[] = [];
  afterEach(() => {
    for (const stub of stubs.splice(0)) stub.stop();
  });
  return (script = {}) => {
    const stub = startSmtpStub(script);
    stubs.push(stub);
    return stub;
  };
};
