// Builds page paths; knows no page but the first.

/** `pagePath("services", id)` is `/ui/services/ID`. */
export const pagePath = (path: string, ...rest: readonly string[]): string =>
  path === "dashboard" ? "/" : ["/ui", path, ...rest.map(encodeURIComponent)].join("/");
