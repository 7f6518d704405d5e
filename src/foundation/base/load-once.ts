/** Calls `load` when its result is first needed, and returns that result from then on. */
export const once = <T>(load: () => T): (() => T) => {
  let loaded: { readonly value: T } | null = null;
  return () => {
    loaded ??= { value: load() };
    return loaded.value;
  };
};

/**
 * A value that is loaded when it is first needed: the loaded value itself afterwards, so that nobody waits for it again. All who
 * need it meanwhile wait for the same load; one that fails is tried again by the next.
 */
export class LoadOnce<T extends object> {
  #loaded: T | null = null;
  #loading: Promise<T> | null = null;

  constructor(private readonly load: () => Promise<T>) {}

  get(): T | Promise<T> {
    if (this.#loaded !== null) return this.#loaded;
    this.#loading ??= this.#begin();
    return this.#loading;
  }

  async #begin(): Promise<T> {
    try {
      this.#loaded = await this.load();
      return this.#loaded;
    } finally {
      this.#loading = null;
    }
  }
}
