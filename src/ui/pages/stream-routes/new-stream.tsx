// A new stream in one form: the ports of the gateway and the server behind them. Creates a service and a stream route for each port.
import {
  Anchor,
  Button,
  Group,
  NumberInput,
  Select,
  SimpleGrid,
  Stack,
  TextInput,
} from "@mantine/core";
import { useForm, type UseFormReturnType } from "@mantine/form";
import { useState } from "react";
import { useLocation } from "wouter";
import { useChange } from "../../api/changes.tsx";
import { useConnection } from "../../api/connection-context.ts";
import type { ApiResponse, Connection } from "../../api/connection.ts";
import { ApiError, portErrorOf } from "../../api/error.ts";
import type { Read } from "../../api/resources.ts";
import { pagePath } from "../../page-path.ts";
import { ErrorPanel } from "../../parts/error-panel.tsx";
import { AddButton, RemoveButton } from "../../parts/fields.tsx";
import { useLeaveGuard } from "../../parts/leave-guard.tsx";
import { Can, PageHead, Section } from "../../parts/page-layout.tsx";
import { newPort, type PortValues, presets } from "./stream-presets.ts";

interface StreamValues {
  readonly preset: string;
  readonly name: string;
  readonly host: string;
  /** Of the gateway. */
  readonly address: string;
  readonly ports: readonly PortValues[];
}

const PARENT = { href: pagePath("stream-routes"), label: "Stream routes" };
const TRANSPORTS = [
  { value: "tcp", label: "TCP" },
  { value: "tls", label: "TLS, ended here" },
  { value: "udp", label: "UDP" },
];

const required = (label: string) => (value: string | number | null) =>
  value === null || String(value).trim() === "" ? `${label} is required` : null;

export function NewStream({ onAllSettings }: { readonly onAllSettings: () => void }) {
  const [, navigate] = useLocation();
  const [failure, setFailure] = useState<Error | null>(null);
  const form = useForm<StreamValues>({
    initialValues: { preset: "custom", name: "", host: "", address: "0.0.0.0", ports: [newPort] },
    validate: {
      name: required("Name"),
      host: required("Server"),
      ports: { port: required("Port"), target_port: required("Server port") },
    },
  });
  const { mutateAsync, isPending } = useCreation();
  useLeaveGuard(form.isDirty() && !isPending);
  const submit = async (values: StreamValues) => {
    setFailure(null);
    try {
      await mutateAsync(values);
      form.resetDirty();
      setTimeout(() => navigate(PARENT.href));
    } catch (error) {
      const { at, cause } = error as RowError;
      const path = cause instanceof ApiError ? fieldOf(cause, at) : null;
      if (path === null) setFailure(cause instanceof Error ? cause : (error as Error));
      else form.setFieldError(path, (cause as ApiError).detail);
    }
  };
  return (
    <form
      noValidate
      aria-label="New stream"
      onSubmit={form.onSubmit((values) => void submit(values))}
    >
      <Stack maw={920} gap={0}>
        <PageHead
          title="New stream"
          text="TCP or UDP ports of the gateway, and the server behind them."
          parent={PARENT}
          actions={
            <Anchor component="button" type="button" size="sm" onClick={onAllSettings}>
              All settings
            </Anchor>
          }
        />
        <Section title="Server">
          <SimpleGrid cols={{ base: 1, sm: 3 }}>
            <Select
              label="Program"
              description="Fills in its usual ports"
              allowDeselect={false}
              data={Object.entries(presets).map(([value, { label }]) => ({ value, label }))}
              value={form.values.preset}
              onChange={(preset) => {
                const { ports = [newPort] } = presets[preset ?? ""] ?? {};
                form.setValues({
                  preset: preset ?? "custom",
                  ports,
                  ...(form.values.name === "" && preset !== "custom" ? { name: preset ?? "" } : {}),
                });
              }}
            />
            <TextInput
              label="Name"
              description="Of the stream route and its service"
              required
              {...form.getInputProps("name")}
            />
            <TextInput
              label="Server"
              description="IP address or host name"
              placeholder="10.0.0.5"
              required
              {...form.getInputProps("host")}
            />
          </SimpleGrid>
        </Section>
        <Section title="Ports" text="Each port of the gateway leads to one of the server.">
          <Stack gap="sm">
            <TextInput
              label="Address"
              description="Of the gateway; 0.0.0.0 for all IPv4 addresses, :: for all addresses"
              {...form.getInputProps("address")}
            />
            {form.values.ports.map((_, index) => (
              <PortRow key={keyAt(index)} form={form} index={index} />
            ))}
            <AddButton label="Add a port" onClick={() => form.insertListItem("ports", newPort)} />
          </Stack>
        </Section>
        {failure !== null && <ErrorPanel error={failure} title="Not created" />}
        <Can needs="editor">
          <Group justify="flex-end">
            <Button type="submit" loading={isPending}>
              Create
            </Button>
          </Group>
        </Can>
      </Stack>
    </form>
  );
}

/** Rows have no other identity. */
const keyAt = (index: number): string => `port ${index}`;

interface PortRowProps {
  readonly form: Pick<
    UseFormReturnType<StreamValues>,
    "getInputProps" | "values" | "removeListItem"
  >;
  readonly index: number;
}

function PortRow({ form, index }: PortRowProps) {
  const number = { min: 1, max: 65_535, allowDecimal: false, hideControls: true, required: true };
  return (
    <Group
      component="fieldset"
      bd={0}
      p={0}
      m={0}
      gap="sm"
      align="flex-start"
      wrap="nowrap"
      aria-label={`Port ${index + 1}`}
    >
      <Select
        label="Transport"
        allowDeselect={false}
        data={TRANSPORTS}
        style={{ flex: 1 }}
        {...form.getInputProps(`ports.${index}.transport`)}
      />
      <NumberInput
        label="Port"
        style={{ flex: 1 }}
        {...number}
        {...form.getInputProps(`ports.${index}.port`)}
        value={form.values.ports[index]?.port ?? ""}
      />
      <NumberInput
        label="Server port"
        style={{ flex: 1, minWidth: "6.5rem" }}
        {...number}
        {...form.getInputProps(`ports.${index}.target_port`)}
        value={form.values.ports[index]?.target_port ?? ""}
      />
      {form.values.ports.length > 1 && (
        <RemoveButton
          label={`Remove port ${index + 1}`}
          onClick={() => form.removeListItem("ports", index)}
        />
      )}
    </Group>
  );
}

/** What went wrong at one of the ports. */
class RowError extends Error {
  readonly at: number;

  constructor(at: number, cause: unknown) {
    super(String(cause), { cause });
    this.at = at;
  }
}

/** The input that an error is about; null: none. */
function fieldOf(error: ApiError, at: number): string | null {
  const field = portErrorOf(error)?.field ?? error.field ?? "";
  if (/address$/.test(field)) return "address";
  if (/port$/.test(field))
    return field.startsWith("targets") ? `ports.${at}.target_port` : `ports.${at}.port`;
  if (/host$/.test(field)) return "host";
  return /^name/.test(field) || error.status === 409 ? "name" : null;
}

/** All, or none: what was created before a failure is deleted again. */
function useCreation() {
  const connection = useConnection();
  return useChange<Read<"stream-routes">, StreamValues>({
    send: (values) => createAll(connection, values),
    touches: ["services", "stream-routes"],
    done: (_, { name }) => `Stream ${name} created`,
    showsErrors: true,
  });
}

async function createAll(
  connection: Connection,
  { name, host, address, ports, preset }: StreamValues,
): Promise<ApiResponse<Read<"stream-routes">>> {
  const made: string[] = [];
  const post = async <T extends { readonly id: string }>(kind: string, body: object) => {
    const response = await connection.send<T>(`/${kind}`, { method: "POST", body });
    made.unshift(`/${kind}/${response.value.id}`);
    return response;
  };
  let last: ApiResponse<Read<"stream-routes">> | null = null;
  for (const [at, { transport, port, target_port: target }] of ports.entries()) {
    const own = at === 0 ? name.trim() : `${name.trim()} ${transport} ${port}`;
    const protocol = transport === "udp" ? "udp" : "tcp";
    const timeout = presets[preset]?.udp_session_timeout;
    try {
      const targets = [{ host: host.trim(), port: target }];
      const service = await post<Read<"services">>("services", { name: own, protocol, targets });
      last = await post<Read<"stream-routes">>("stream-routes", {
        name: own,
        protocol,
        listen_address: address.trim(),
        listen_port: port,
        service_id: service.value.id,
        tls_mode: transport === "tls" ? "terminate" : "none",
        ...(protocol === "udp" && timeout !== undefined ? { udp_session_timeout: timeout } : {}),
      });
    } catch (error) {
      for (const path of made) await connection.send(path, { method: "DELETE" });
      throw new RowError(at, error);
    }
  }
  if (last === null) throw new Error("there is no port");
  return last;
}
