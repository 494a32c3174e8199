// Converts middlewares of Traefik for headers to plugins; knows no router.
import type { MiddlewareConverter } from "./middlewares.ts";
export const headers: Readonly<Record<string, MiddlewareConverter>> = {};
