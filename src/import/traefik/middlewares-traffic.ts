// Converts middlewares of Traefik for traffic to plugins; knows no router.
import type { MiddlewareConverter } from "./middlewares.ts";
export const traffic: Readonly<Record<string, MiddlewareConverter>> = {};
