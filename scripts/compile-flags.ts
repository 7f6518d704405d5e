/**
 * Flags of `bun build` for executables. No --minify: Elysia reads the source text of its handlers. No autoload: a binary must not
 * read the .env of the directory it happens to be started in. Splitting keeps what is imported only when it is needed out of
 * memory until then.
 */
export const COMPILE_FLAGS: readonly string[] = [
  "--compile",
  "--bytecode",
  "--format=esm",
  "--sourcemap",
  "--splitting",
  "--no-compile-autoload-dotenv",
  "--no-compile-autoload-bunfig",
];
