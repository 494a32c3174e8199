// Tests a request without sending it: the matched route and why, the plugins, the target. Changes nothing.
import { Button, Group, Select, SimpleGrid, Stack, TextInput } from "@mantine/core";
import { type FormEvent, useState } from "react";
import { useSearchParams } from "wouter";
import { useQuery } from "@tanstack/react-query";
import { useConnection } from "../../api/connection-context.ts";
import { ApiError } from "../../api/error.ts";
import type { Schemas } from "../../api/resources.ts";
import { pagePath } from "../../page-path.ts";
import { ErrorPanel } from "../../parts/error-panel.tsx";
import { KeyValueField } from "../../parts/fields.tsx";
import { HelpText, PageHead, Section } from "../../parts/page-layout.tsx";
import { RowsSkeleton } from "../../parts/skeletons.tsx";
import { ExplanationView } from "./explanation.tsx";

interface Tested {
  readonly method: string;
  readonly url: string;
  readonly client_ip: string;
  readonly headers: Readonly<Record<string, string>>;
}

const METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];

/** The request is in the page URL, so that the test can be shared. */
function testedOf(parameters: URLSearchParams): Tested {
  return {
    method: parameters.get("method") ?? "GET",
    url: parameters.get("url") ?? "",
    client_ip: parameters.get("client_ip") ?? "127.0.0.1",
    headers: Object.fromEntries(
      parameters.getAll("header").map((line): [string, string] => {
        const [name = "", ...value] = line.split(": ");
        return [name, value.join(": ")];
      }),
    ),
  };
}

function parametersOf({ method, url, client_ip, headers }: Tested): URLSearchParams {
  const parameters = new URLSearchParams({ url });
  if (method !== "GET") parameters.set("method", method);
  if (client_ip !== "127.0.0.1") parameters.set("client_ip", client_ip);
  for (const [name, value] of Object.entries(headers))
    parameters.append("header", `${name}: ${value}`);
  return parameters;
}

export function TestPage() {
  const [parameters, setParameters] = useSearchParams();
  const asked = testedOf(parameters);
  const connection = useConnection();
  const answer = useQuery({
    queryKey: ["routes", "explain", asked],
    enabled: asked.url !== "",
    // The same request would be refused again.
    retry: false,
    queryFn: async ({ signal }) =>
      (
        await connection.send<Schemas["Explanation"]>("/routes/explain", {
          method: "POST",
          body: asked,
          signal,
        })
      ).value,
  });
  const run = (tested: Tested) => {
    if (parametersOf(tested).toString() === parameters.toString()) void answer.refetch();
    else setParameters(parametersOf(tested), { replace: true });
  };
  return (
    <Stack gap={0} maw={920}>
      <PageHead
        title="Test a request"
        text="Shows which route a request matches, why, and its target. Nothing is sent to your application."
        parent={{ href: pagePath("routes"), label: "Routes" }}
      />
      <RequestForm
        start={asked}
        onRun={run}
        isBusy={answer.isFetching}
        error={answer.error instanceof ApiError ? answer.error : null}
      />
      {asked.url === "" ? null : answer.isPending ? (
        <RowsSkeleton />
      ) : answer.data === undefined ? (
        fieldOf(answer.error) === null && <ErrorPanel error={answer.error} />
      ) : (
        <ExplanationView explanation={answer.data} />
      )}
    </Stack>
  );
}

const fieldOf = (error: unknown): string | null => (error instanceof ApiError ? error.field : null);

interface FormProps {
  readonly start: Tested;
  readonly onRun: (tested: Tested) => void;
  readonly isBusy: boolean;
  readonly error: ApiError | null;
}

function RequestForm({ start, onRun, isBusy, error }: FormProps) {
  const [tested, setTested] = useState(start);
  const set = (part: Partial<Tested>) => setTested({ ...tested, ...part });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    const url = /^https?:\/\//.test(tested.url) ? tested.url : `http://${tested.url}`;
    setTested({ ...tested, url });
    onRun({ ...tested, url });
  };
  const errorAt = (field: string) => (error?.field === field ? error.detail : undefined);
  return (
    <Section title="Request">
      <form onSubmit={submit} aria-label="Request to test" noValidate>
        <Stack>
          <Group gap="sm" align="flex-start">
            <Select
              label="Method"
              data={METHODS.includes(tested.method) ? METHODS : [...METHODS, tested.method]}
              value={tested.method}
              onChange={(method) => set({ method: method ?? "GET" })}
              allowDeselect={false}
              w={130}
            />
            <TextInput
              label="URL"
              placeholder="https://shop.example.com/cart"
              required
              value={tested.url}
              onChange={(event) => set({ url: event.currentTarget.value })}
              error={errorAt("url")}
              style={{ flex: "1 1 16rem" }}
            />
          </Group>
          <SimpleGrid cols={{ base: 1, sm: 2 }}>
            <TextInput
              label="Client address"
              value={tested.client_ip}
              onChange={(event) => set({ client_ip: event.currentTarget.value })}
              error={errorAt("client_ip")}
            />
          </SimpleGrid>
          <KeyValueField
            label="Headers"
            value={tested.headers}
            onChange={(headers) => set({ headers })}
            error={error?.field?.startsWith("headers") === true ? error.message : undefined}
          />
          <Group justify="space-between">
            <HelpText>A worker evaluates it like a real request.</HelpText>
            <Button type="submit" loading={isBusy} disabled={tested.url.trim() === ""}>
              Test
            </Button>
          </Group>
        </Stack>
      </form>
    </Section>
  );
}
