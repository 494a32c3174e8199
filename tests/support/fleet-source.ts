// The source of a fleet's log in a database of the tests, with the product's deadlines.
import { queryTimes } from "../../src/fleet/postgres-connection.ts";
import { PostgresSource } from "../../src/fleet/postgres-source.ts";
import type { Postgres } from "./postgres.ts";

export const createSource = ({ url }: Postgres): PostgresSource =>
  new PostgresSource({ urls: [url], rootCertificate: null, ...queryTimes });
