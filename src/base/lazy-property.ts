/**
 * Lazy properties for objects that are passed to user code, most of which does not read them. Implemented as a proxy,
 * because creating an object with an own getter takes about twenty times as long. Reading or spreading the property,
 * changing or deleting any property, or freezing the object computes it; from then on it is an ordinary property.
 */

/** Returns a proxy of `object` whose property `name` is computed when it is first read. */
export function withLazyProperty<T extends object, K extends keyof T>(object: T, name: K, compute: () => T[K]): T {
  return new Proxy(object, new LazyPropertyHandler(name, compute));
}

class LazyPropertyHandler<T extends object, K extends keyof T> implements ProxyHandler<T> {
  private readonly name: K;
  private compute: (() => T[K]) | undefined;

  constructor(name: K, compute: () => T[K]) {
    this.name = name;
    this.compute = compute;
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
