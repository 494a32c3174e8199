// Builds page paths; knows no page.

/** `pagePath("services", id)` is `/ui/services/ID`; the empty path is the dashboard. */
export const pagePath = (path: string, ...rest: readonly string[]): string =>
  path === "" ? "/" : ["/ui", path, ...rest.map(encodeURIComponent)].join("/");
