/** Has pieces of work done one at a time, in the order in which they came. A failure is its caller's, and stops no other. */
export const createTurn = () => {
  let last: Promise<unknown> = Promise.resolve();
  return <T>(work: () => Promise<T>): Promise<T> => {
    const done = last.then(work);
    last = done.catch(() => undefined);
    return done;
  };
};
