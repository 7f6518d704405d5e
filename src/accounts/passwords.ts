import { err, ok, type Result } from "../base/errors.ts";
import { Gate, waitFor } from "../base/wait.ts";
import type { Runtime } from "../db/runtime.ts";
import { isCommonPassword } from "./common-passwords.ts";

const CHARACTERS_MIN = 10;
const CHARACTERS_MAX = 200;

/** 32 MiB and two passes: above the minimum of OWASP (19 MiB, two passes), about 60 ms. */
const ARGON2 = { algorithm: "argon2id", memoryCost: 32_768, timeCost: 2 } as const;
/** Each takes 32 MiB and a core. */
const CONCURRENCY_MAX = 2;
const WAITING_MAX = 40;
const TIMEOUT_MS = 10_000;

/** The hash of a password that nobody knows, with the same costs: an unknown user takes as long as a known one. */
export const UNKNOWN_USER_HASH =
  "$argon2id$v=19$m=32768,t=2,p=1$K4gRYQmXZBjRUn8Vrv8rxi4ZDDQE7PlhQd0QNzbDK+4$GinU7zuLuQ4zO7H3He4uww2pokqAv1Od5h2hGzkF6Fg";

/** What is wrong with a password that somebody chose, as a sentence; null when nothing is. */
export const passwordProblem = (password: string, email: string): string | null => {
  const characters = [...password];
  const [localPart = ""] = email.split("@");
  const lower = password.toLowerCase();
  if (!password.isWellFormed()) return "The password contains damaged characters.";
  if (characters.length < CHARACTERS_MIN) return `A password must have at least ${CHARACTERS_MIN} characters.`;
  if (characters.length > CHARACTERS_MAX) return `A password must have at most ${CHARACTERS_MAX} characters.`;
  if (lower === email.toLowerCase() || lower === localPart.toLowerCase())
    return "The password must not be the email address.";
  if (isCommonPassword(password)) return "This is one of the most common passwords. Use several words, for example.";
  return null;
};

/** Unicode has several spellings of one text, and keyboards differ in which they type. */
const bytesOf = (password: string): string => password.normalize("NFC");

/** Hashes and verifies passwords, a few at a time. `busy`: too many wait, or it took too long. */
export class Passwords {
  readonly #clock: Runtime["clock"];
  readonly #gate = new Gate(CONCURRENCY_MAX);

  constructor(clock: Runtime["clock"]) {
    this.#clock = clock;
  }

  /** The hash to store: argon2id with its costs and salt (PHC string format). */
  hash(password: string): Promise<Result<string, "busy">> {
    return this.#run(() => Bun.password.hash(bytesOf(password), ARGON2));
  }

  /** Whether a password has this hash. With null, for an unknown user, it takes the same time and is false. */
  verify(password: string, hash: string | null): Promise<Result<boolean, "busy">> {
    // A longer one was never accepted; it would cost more than others.
    const isTooLong = password.length > 2 * CHARACTERS_MAX;
    return this.#run(async () => {
      const isRight = await Bun.password.verify(isTooLong ? "x" : bytesOf(password), hash ?? UNKNOWN_USER_HASH);
      return isRight && hash !== null && !isTooLong;
    });
  }

  async #run<T>(work: () => Promise<T>): Promise<Result<T, "busy">> {
    if (this.#gate.waiting >= WAITING_MAX) return err("busy");
    const abandoned = new AbortController();
    const run = this.#gate.run(async (): Promise<Result<T, "busy">> => {
      return abandoned.signal.aborted ? err("busy") : ok(await work());
    });
    const waited = await waitFor(this.#clock, run, { timeoutMs: TIMEOUT_MS });
    if (waited.ok) return waited.value;
    abandoned.abort();
    return err("busy");
  }
}
