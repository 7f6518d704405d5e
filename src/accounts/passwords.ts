import { err, ok, type Result } from "../foundation/base/errors.ts";
import { FairGate } from "../foundation/base/fair-gate.ts";
import { waitFor } from "../foundation/base/wait.ts";
import type { Runtime } from "../foundation/db/runtime.ts";

const CHARACTERS_MIN = 10;
const CHARACTERS_MAX = 200;

/** Each takes 32 MiB and a core. */
const CONCURRENCY_MAX = 2;
/** What two at a time compute within the timeout, on a quiet machine. */
const WAITING_MAX = 200;
const TIMEOUT_MS = 10_000;

/** What a hash of argon2id costs. */
export interface PasswordCosts {
  /** In KiB. */
  readonly memoryCost: number;
  /** Passes over the memory. */
  readonly timeCost: number;
  /** The hash of a password that nobody knows, with the same costs: an unknown user takes as long as a known one. */
  readonly unknownUserHash: string;
}

/** 32 MiB and two passes: above the minimum of OWASP (19 MiB, two passes), about 60 ms. */
export const PASSWORD_COSTS: PasswordCosts = {
  memoryCost: 32_768,
  timeCost: 2,
  unknownUserHash:
    "$argon2id$v=19$m=32768,t=2,p=1$K4gRYQmXZBjRUn8Vrv8rxi4ZDDQE7PlhQd0QNzbDK+4$GinU7zuLuQ4zO7H3He4uww2pokqAv1Od5h2hGzkF6Fg",
};

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
const bytesOf = (password: string) => password.normalize("NFC");

/**
 * Whose turn a hash takes: the account of a user who is signed in or has a set-up link, the network of a client that is
 * not (`networkKey`), and null for a command, which has the process to itself.
 */
export type PasswordCaller = string | null;

/**
 * Hashes and verifies passwords, a few at a time, the callers in turn: one that sends many waits behind its own.
 * `busy`: too many of this caller wait, or it took too long.
 */
export class Passwords {
  readonly #gate: FairGate;

  constructor(
    private readonly clock: Runtime["clock"],
    private readonly costs: PasswordCosts,
  ) {
    this.#gate = new FairGate(
      { concurrencyMax: CONCURRENCY_MAX, waitingMax: WAITING_MAX, waitMsMax: TIMEOUT_MS },
      this.clock,
    );
  }

  /** The hash to store: argon2id with its costs and salt (PHC string format). */
  hash(password: string, caller: PasswordCaller): Promise<Result<string, "busy">> {
    const { memoryCost, timeCost } = this.costs;
    const options = { algorithm: "argon2id", memoryCost, timeCost } as const;
    return this.#run(caller, () => Bun.password.hash(bytesOf(password), options));
  }

  /** Whether a password has this hash. With null, for an unknown user, it takes the same time and is false. */
  verify(password: string, hash: string | null, caller: PasswordCaller): Promise<Result<boolean, "busy">> {
    // A longer one was never accepted; it would cost more than others.
    const isTooLong = password.length > 2 * CHARACTERS_MAX;
    return this.#run(caller, async () => {
      const isRight = await Bun.password.verify(
        isTooLong ? "x" : bytesOf(password),
        hash ?? this.costs.unknownUserHash,
      );
      return isRight && hash !== null && !isTooLong;
    });
  }

  async #run<T>(caller: PasswordCaller, work: () => Promise<T>): Promise<Result<T, "busy">> {
    const leave = await this.#gate.enter(caller);
    if (leave === null) return err("busy");
    const waited = await waitFor(this.clock, work().finally(leave), { timeoutMs: TIMEOUT_MS });
    return waited.ok ? ok(waited.value) : err("busy");
  }
}

const wordsOf = (text: string) => new Set(text.trim().split(/\s+/));

/** Words that are common passwords, alone, doubled or with digits and signs behind them. */
const WORDS = wordsOf(`
  password passwort passwords pass passwd passphrase mypassword thepassword newpassword adminpassword rootpassword temppassword testpassword
  defaultpassword qwerty qwertz azerty qwertyuiop asdf asdfgh asdfghjkl zxcvbn zxcvbnm qazwsx qazwsxedc abc abcd abcdef letmein letmeinnow
  welcome hello helloworld changeme changemenow iloveyou iloveyouso iloveyoubaby iloveyouforever ilovemyself love lovely lover secret
  supersecret topsecret admin administrator root toor user guest default test temp demo login master access monkey dragon shadow sunshine
  princess football baseball basketball soccer hockey superman batman spiderman starwars pokemon minecraft fortnite trustno whatever freedom
  forever michael michelle jennifer jessica charlie jordan thomas daniel andrew ashley nicole anthony robert george liverpool manchester
  chelsea arsenal barcelona juventus realmadrid computer internet microsoft samsung google facebook apple iphone android linux windows
  summer winter spring autumn january february march april june july august september october november december monday friday
  blink godisgood jesuschrist jesus jesusislord ihateyou fuckyou fuckoff nothing cookie chocolate cheese banana orange killer hunter
  correcthorsebatterystaple postwarden postmaster hostmaster webmaster mailserver email company office a aa aaa q z`);

/** Other passwords of at least ten characters that are tried first. */
const PASSWORDS = wordsOf(`
  1q2w3e4r5t 1q2w3e4r5t6y 1q2w3e4r5t6y7u 1qaz2wsx3edc 1qazxsw23edc zaq12wsxcde3 zaq1zaq1xsw2 1qaz1qaz2wsx qazwsxedcrfv 12qwaszx34
  q1w2e3r4t5 q1w2e3r4t5y6 a1b2c3d4e5 1a2b3c4d5e a1s2d3f4g5 12345qwert 12345qwerty 123qweasdzxc 123qwe123qwe 123abc123abc 1234qwerasdf
  1234qwer1234 123456qwerty 1234567qwerty 123456789a 1234567890a 123456789abc 123456abcdef 123123123a 123123123123 1231231234
  112233445566 11223344556 1122334455 1234554321 123454321a 1212121212 1234512345 147258369a 1472583690 147258369147 159753456852
  1597534862 741852963a 7418529630 789456123a 7894561230 9876543210a 987654321a 9638527410 3216549870 0987654321q 5555566666 1111122222
  asdfghjkl123 poiuytrewq lkjhgfdsa123 mnbvcxz123 qweasdzxc123 qwe123asd456 iloveyou2u`);

const SEQUENCES = ["0123456789", "abcdefghijklmnopqrstuvwxyz", "qwertyuiopasdfghjklzxcvbnm"].flatMap((characters) =>
  [characters, [...characters].toReversed().join("")].map((one) => one.repeat(20)),
);

/** Other spellings that programs try. */
const spelledOut = (text: string) =>
  text.replaceAll("@", "a").replaceAll("0", "o").replaceAll(/[$5]/g, "s").replaceAll("3", "e").replaceAll(/[1!]/g, "i");

// input ≤ 1,000 characters
const withoutDoubling = (text: string) => /^(.+?)\1+$/s.exec(text)?.[1] ?? text;

/** Whether a password is among those that programs try first: common ones, sequences, and repetitions of few characters. */
const isCommonPassword = (password: string) => {
  const lower = password.toLowerCase();
  const word = withoutDoubling(lower.replace(/(?<![\d\p{P}\p{S}\s])[\d\p{P}\p{S}\s]+$/u, ""));
  return (
    PASSWORDS.has(lower) ||
    WORDS.has(word) ||
    WORDS.has(spelledOut(word)) ||
    new Set(lower).size < 4 ||
    SEQUENCES.some((sequence) => sequence.includes(lower))
  );
};
