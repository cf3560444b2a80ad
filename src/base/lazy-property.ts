/**
 * Objects that are handed to code of others with a member that few of them read. A proxy and no getter: to make an
 * object with a getter of its own costs twenty times as much. Whoever takes it apart, spreads, freezes or changes it has
 * read the member, so it is made then, and is an ordinary one from there on.
 */
export function withLazyProperty<T extends object, K extends keyof T>(object: T, name: K, make: () => T[K]): T {
  return new Proxy(object, new LazyPropertyHandler(name, make));
}

class LazyPropertyHandler<T extends object, K extends keyof T> implements ProxyHandler<T> {
  private readonly name: K;
  private compute: (() => T[K]) | undefined;

  constructor(name: K, make: () => T[K]) {
    this.name = name;
    this.compute = make;
  }

  get(object: T, key: PropertyKey): unknown {
    if (key === this.name) this.materialize(object);
    return object[key as K];
  }

  getOwnPropertyDescriptor(object: T, key: PropertyKey): PropertyDescriptor | undefined {
    if (key === this.name) this.materialize(object);
    return Reflect.getOwnPropertyDescriptor(object, key);
  }

  defineProperty(object: T, key: PropertyKey, descriptor: PropertyDescriptor): boolean {
    this.materialize(object);
    return Reflect.defineProperty(object, key, descriptor);
  }

  deleteProperty(object: T, key: PropertyKey): boolean {
    this.materialize(object);
    return Reflect.deleteProperty(object, key);
  }

  preventExtensions(object: T): boolean {
    this.materialize(object);
    return Reflect.preventExtensions(object);
  }

  private materialize(object: T): void {
    const { compute } = this;
    if (compute === undefined) return;
    this.compute = undefined;
    object[this.name] = compute();
  }
}
