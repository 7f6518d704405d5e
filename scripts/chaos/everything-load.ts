/** What clients do to the service while it is killed: they use every feature, and remember what was acknowledged. */
import { workbookWith } from "../../src/testing/workbook.ts";
import { mailOf } from "../bench/dmarc-mails.ts";
import { BINARY, type Environment } from "../harness/binary.ts";
import { chance } from "./claims.ts";
import { TEMPERAMENTS } from "./world.ts";

export interface AcknowledgedCheck {
  readonly id: string;
  readonly email: string;
}

export interface AcknowledgedList {
  readonly id: string;
  readonly rows: number;
}

export interface LoadOptions {
  readonly env: Environment;
  readonly keys: readonly string[];
  /** The URL of the webhook receiver. */
  readonly hook: string;
  /** Addresses on the blocklist. */
  readonly listed: Set<string>;
  /** Where report mail goes, and the midnight after the last day of the reports. */
  readonly reportAddress: string;
  readonly todayS: number;
}

/** A request that may be repeated with its Idempotency-Key. */
interface Sent {
  readonly path: string;
  readonly type: string;
  readonly body: string | Uint8Array<ArrayBuffer>;
  readonly key: string;
  readonly idempotencyKey: string;
  readonly id: string;
}

const WINDOW_MS = 600;
const CHECKS_PER_ROUND = 40;
const UPLOADS_PER_ROUND = 4;
const ROWS_MAX = 60;
const TARGETS_MAX = 60;
const REPEATED_OF = 5;
const XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet";

const workbookOf = (emails: readonly string[]): Uint8Array<ArrayBuffer> => {
  const cell = (text: string) => `<c t="inlineStr"><is><t>${text}</t></is></c>`;
  const rows = ["email", ...emails].map((email, at) => `<row r="${at + 1}">${cell(email)}</row>`);
  return new Uint8Array(workbookWith({ rows: rows.join("") }));
};

/** The clients of one run. The public fields have everything that the service acknowledges. */
export class Load {
  readonly checks: AcknowledgedCheck[] = [];
  readonly lists: AcknowledgedList[] = [];
  /** Blocklist targets and their checks, by id. */
  readonly targets = new Map<string, string>();
  readonly targetChecks = new Set<string>();
  /** Numbers of reports whose upload was answered with 200. */
  readonly uploaded = new Set<number>();
  creditsGranted = 0;
  /** Responses that acknowledged something. */
  responses = 0;
  /** Repeats with an Idempotency-Key, and those that found another resource. */
  repeats = 0;
  wrongRepeats = 0;
  /** Responses of the service that no client expects. */
  readonly surprises: string[] = [];
  #serial = 0;
  readonly #sent: Sent[] = [];
  readonly #uploads: number[];

  /** `uploads`: the numbers of the reports that come by HTTP. */
  constructor(
    private readonly options: LoadOptions,
    uploads: readonly number[],
  ) {
    this.#uploads = [...uploads];
  }

  /** Starts everything that clients do in one round; resolves when nothing waits for a response. */
  async round(url: string): Promise<void> {
    const work = [
      ...Array.from({ length: CHECKS_PER_ROUND }, () => () => this.#check(url)),
      ...Array.from({ length: UPLOADS_PER_ROUND }, () => () => this.#upload(url)),
      () => this.#list(url),
      () => this.#list(url),
      () => this.#repeat(url),
      () => this.#target(url),
      () => this.#checkTarget(url),
      () => this.#grant(),
    ];
    await Promise.all(
      work.map(async (one) => {
        await Bun.sleep(chance(WINDOW_MS));
        await one();
      }),
    );
  }

  /** Nothing that was sent so far is repeated: with the clock set forward, the keys have expired. */
  expireIdempotencyKeys(): void {
    this.#sent.length = 0;
  }

  /** Uploads what is left, when the service is no longer killed. */
  async uploadRest(url: string): Promise<void> {
    while (this.#uploads.length > 0) await this.#upload(url);
  }

  #key(): string {
    return this.options.keys[chance(this.options.keys.length)] ?? "";
  }

  #email(): string {
    const temperament = chance(2) === 0 ? "good" : (TEMPERAMENTS[chance(TEMPERAMENTS.length)] ?? "good");
    return `${chance(2) === 0 ? "exists" : "nobody"}${this.#serial++}@d${chance(40)}.${temperament}.chaos.test`;
  }

  /** The response as JSON; null when the connection died with the server, so that nothing was acknowledged. */
  async #ask(url: string, { path, type, body, key, idempotencyKey }: Omit<Sent, "id">): Promise<AskedJson | null> {
    const headers: Record<string, string> = { authorization: `Bearer ${key}`, "content-type": type };
    if (idempotencyKey !== "") headers["idempotency-key"] = idempotencyKey;
    try {
      const response = await fetch(url + path, { method: "POST", headers, body });
      const json = (await response.json()) as AskedJson;
      if (response.ok) {
        this.responses++;
        return json;
      }
      // A service that is stopping says so.
      if (response.status !== 503) this.surprises.push(`${path}: ${response.status} ${JSON.stringify(json)}`);
      return null;
    } catch {
      return null;
    }
  }

  async #create(url: string, request: Omit<Sent, "id">): Promise<string | null> {
    const id = (await this.#ask(url, request))?.id ?? null;
    if (id !== null && request.idempotencyKey !== "") this.#sent.push({ ...request, id });
    return id;
  }

  async #check(url: string): Promise<void> {
    const email = this.#email();
    const idempotencyKey = chance(2) === 0 ? `check ${this.#serial}` : "";
    const request = { path: "/v1/email-verifications?timeout=1", type: "application/json", key: this.#key() };
    const id = await this.#create(url, { ...request, body: JSON.stringify({ email }), idempotencyKey });
    if (id !== null) this.checks.push({ id, email });
  }

  async #list(url: string): Promise<void> {
    const emails = Array.from({ length: 1 + chance(ROWS_MAX) }, () => this.#email());
    const webhook = `${this.options.hook}/list`;
    const request = { key: this.#key(), idempotencyKey: `list ${this.#serial}` };
    const byQuery = `/v1/bulk-verifications?webhook_url=${encodeURIComponent(webhook)}`;
    const forms = [
      {
        ...{ path: "/v1/bulk-verifications", type: "application/json" },
        body: JSON.stringify({ emails, webhook_url: webhook }),
      },
      { path: byQuery, type: "text/csv", body: `email\n${emails.join("\n")}\n` },
      { path: byQuery, type: XLSX, body: workbookOf(emails) },
    ] as const;
    const id = await this.#create(url, { ...request, ...(forms[chance(forms.length)] ?? forms[0]) });
    if (id !== null) this.lists.push({ id, rows: emails.length });
  }

  async #repeat(url: string): Promise<void> {
    for (let n = chance(REPEATED_OF); n > 0; n--) {
      const before = this.#sent[chance(this.#sent.length)];
      const again = before === undefined ? null : await this.#ask(url, before);
      if (again === null) continue;
      this.repeats++;
      if (again.id !== before?.id) this.wrongRepeats++;
    }
  }

  async #target(url: string): Promise<void> {
    if (this.targets.size >= TARGETS_MAX) return;
    const n = this.#serial++;
    const target = `100.20.${(n >> 8) & 255}.${n & 255}`;
    const body = JSON.stringify({ target, webhook_url: `${this.options.hook}/target` });
    const request = { path: "/v1/blacklist/targets", type: "application/json", body, idempotencyKey: "" };
    const id = (await this.#ask(url, { ...request, key: this.options.keys[0] ?? "" }))?.id;
    if (id !== undefined) this.targets.set(id, target);
  }

  /** Puts a target on the blocklist or takes it off, and has it checked. */
  async #checkTarget(url: string): Promise<void> {
    const [id, ip] = [...this.targets][chance(this.targets.size)] ?? [];
    if (id === undefined || ip === undefined) return;
    const { listed } = this.options;
    if (!listed.delete(ip)) listed.add(ip);
    const path = `/v1/blacklist/targets/${id}/check?timeout=1`;
    const request = { path, type: "application/json", body: "", idempotencyKey: "" };
    const answer = await this.#ask(url, { ...request, key: this.options.keys[0] ?? "" });
    if (answer?.check?.status === "listed" || answer?.check?.status === "clean") this.targetChecks.add(answer.check.id);
  }

  async #upload(url: string): Promise<void> {
    const n = this.#uploads.shift();
    if (n === undefined) return;
    const { reportAddress, todayS, keys } = this.options;
    const body = new Uint8Array(mailOf(n, reportAddress, todayS));
    const request = { path: "/v1/dmarc/reports", type: "message/rfc822", body, idempotencyKey: "" };
    if ((await this.#ask(url, { ...request, key: keys[0] ?? "" })) === null) this.#uploads.push(n);
    else this.uploaded.add(n);
  }

  /** By the operator's command, beside the server. */
  async #grant(): Promise<void> {
    if (chance(4) !== 0) return;
    const credits = 1 + chance(9);
    const { exited } = Bun.spawn([BINARY, "credits", "grant", "chaos", String(credits)], {
      ...{ env: { ...this.options.env }, stdin: "ignore", stdout: "ignore", stderr: "ignore" },
    });
    if ((await exited) === 0) this.creditsGranted += credits;
  }
}

interface AskedJson {
  readonly id?: string;
  readonly check?: { readonly id: string; readonly status: string };
}
