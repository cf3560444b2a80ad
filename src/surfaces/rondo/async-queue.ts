/** A queue that one producer fills and one consumer iterates over. */

/** An async iterable of pushed items. It ends after `end`, or throws after `fail`, once all items are consumed. */
export class AsyncQueue<T> implements AsyncIterableIterator<T> {
  private readonly items: T[] = [];
  private finish: { readonly error?: unknown } | undefined;
  private wake: (() => void) | undefined;
  private readonly onReturn: () => void;

  /** `onReturn` is called when the consumer leaves the iteration before its end. */
  constructor(onReturn: () => void) {
    this.onReturn = onReturn;
  }

  /** Adds an item. Does nothing after the end. */
  push(item: T): void {
    if (this.finish !== undefined) return;
    this.items.push(item);
    this.wake?.();
  }

  /** Ends the iteration after the items that were pushed. */
  end(): void {
    this.finish ??= {};
    this.wake?.();
  }

  /** Ends the iteration with an error after the items that were pushed. */
  fail(error: unknown): void {
    this.finish ??= { error };
    this.wake?.();
  }

  /** Returns the next item and waits for it if necessary. */
  async next(): Promise<IteratorResult<T>> {
    for (;;) {
      if (this.items.length > 0) return { done: false, value: this.items.shift() as T };
      if (this.finish !== undefined) {
        if ('error' in this.finish) throw this.finish.error;
        return { done: true, value: undefined };
      }
      await new Promise<void>((resolve) => {
        this.wake = resolve;
      });
      this.wake = undefined;
    }
  }

  /** Ends the iteration, which discards the remaining items. */
  async return(): Promise<IteratorResult<T>> {
    this.items.length = 0;
    this.end();
    this.onReturn();
    return { done: true, value: undefined };
  }

  [Symbol.asyncIterator](): this {
    return this;
  }
}
