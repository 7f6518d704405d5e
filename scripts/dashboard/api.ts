/** The API as a client of the world's service uses it. */
export interface ApiOptions {
  readonly body?: string | Uint8Array<ArrayBuffer> | FormData;
  readonly type?: string;
  readonly method?: "POST" | "PATCH" | "DELETE" | "GET";
  /** Statuses that are not thrown. */
  readonly allowed?: readonly number[];
}

export class Api {
  constructor(
    private readonly base: () => string,
    readonly key: string,
  ) {}

  /** The response as JSON; throws for every status from 400 on that is not allowed. */
  async send<T = Record<string, unknown>>(
    path: string,
    { body, type, method = "POST", allowed = [] }: ApiOptions,
  ): Promise<T> {
    const headers: Record<string, string> = { authorization: `Bearer ${this.key}` };
    if (type !== undefined) headers["content-type"] = type;
    const response = await fetch(`${this.base()}${path}`, { method, headers, ...(body === undefined ? {} : { body }) });
    const text = await response.text();
    if (response.status >= 400 && !allowed.includes(response.status)) {
      throw new Error(`${method} ${path}: ${response.status} ${text}`);
    }
    return (text.startsWith("{") ? JSON.parse(text) : {}) as T;
  }

  post<T = { readonly id: string }>(
    path: string,
    body: object | undefined = undefined,
    allowed: readonly number[] = [],
  ): Promise<T> {
    return this.send<T>(path, { ...(body === undefined ? {} : { body: JSON.stringify(body) }), allowed });
  }

  patch<T = unknown>(path: string, body: object): Promise<T> {
    return this.send<T>(path, { body: JSON.stringify(body), method: "PATCH" });
  }

  get<T>(path: string): Promise<T> {
    return this.send<T>(path, { method: "GET" });
  }
}
