// Converts middlewares of Traefik for access to plugins; knows no router.
import type { MiddlewareConverter } from "./middlewares.ts";
export const access: Readonly<Record<string, MiddlewareConverter>> = {};
