/**
 * Objects that are handed to code of others with a member that few of them read. A proxy and no getter: to make an
 * object with a getter of its own costs twenty times as much. Whoever takes it apart or spreads it has read it.
 */
export function lazy<T extends object, K extends keyof T>(object: T, name: K, make: () => T[K]): T {
  return new Proxy(object, new Lazy(name, make));
}

class Lazy<T extends object, K extends keyof T> implements ProxyHandler<T> {
  private readonly name: K;
  private readonly make: () => T[K];

  constructor(name: K, make: () => T[K]) {
    this.name = name;
    this.make = make;
  }

  get(object: T, key: PropertyKey): unknown {
    return key === this.name ? this.make() : object[key as K];
  }
}
