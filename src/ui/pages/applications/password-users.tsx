// The users who can sign in to an application with a password: who they are, and a new one; stores no password.
import { Anchor, Badge, Group, PasswordInput, Stack, Text, TextInput } from "@mantine/core";
import { Link } from "wouter";
import { useChange } from "../../api/changes.tsx";
import { useConnection } from "../../api/connection-context.ts";
import { ApiError, toMessage } from "../../api/error.ts";
import { useResourceList } from "../../api/queries.ts";
import type { Read } from "../../api/resources.ts";
import { pagePath } from "../../page-path.ts";
import { Can } from "../../parts/page-layout.tsx";
import type { ApplicationFieldsProps } from "./application-fields.tsx";
import { type ApplicationValues, noUser } from "./application-values.ts";
import { CheckLine } from "./live-checks.tsx";

type Form = ApplicationFieldsProps["form"];

/** More are not loaded: the page of consumers searches. */
const MAX_LOADED = 1000;

/** The list of `policies.login`; null: no password is required. */
const listOf = ({ policies }: ApplicationValues): string | null =>
  (policies["login"] as { readonly group?: string } | null)?.group ?? null;

export function PasswordUsers({ form }: ApplicationFieldsProps) {
  const group = listOf(form.values) ?? "users";
  const consumers = useResourceList("consumers", { limit: MAX_LOADED });
  const credentials = useResourceList("credentials", { type: "basic" });
  const withPassword = new Set((credentials.data ?? []).map(({ consumer_id: id }) => id));
  const isLoaded = consumers.data !== undefined && credentials.data !== undefined;
  const users = (consumers.data ?? []).filter(
    ({ id, groups, enabled }) => enabled && groups.includes(group) && withPassword.has(id),
  );
  const { username } = form.values.new_user;
  return (
    <Stack gap="sm">
      {isLoaded && users.length === 0 && username === "" && (
        <CheckLine status="warning">No user can sign in yet: add one.</CheckLine>
      )}
      {users.length > 0 && (
        <Stack gap={4}>
          <Text size="sm" fw={500}>
            Can sign in
          </Text>
          <Group gap={6}>
            {users.map(({ id, username: name }) => (
              <Badge
                key={id}
                variant="light"
                tt="none"
                size="lg"
                component={Link}
                href={pagePath("consumers", id)}
                style={{ cursor: "pointer" }}
              >
                {name}
              </Badge>
            ))}
          </Group>
        </Stack>
      )}
      <Can needs="editor">
        <NewUser form={form} />
      </Can>
      <Anchor component={Link} href={pagePath("consumers")} size="sm">
        All users and their passwords
      </Anchor>
    </Stack>
  );
}

function NewUser({ form }: ApplicationFieldsProps) {
  return (
    <Group gap="sm" align="flex-start" grow preventGrowOverflow={false}>
      <TextInput
        label="New user"
        autoComplete="off"
        autoCapitalize="none"
        spellCheck={false}
        miw={120}
        {...form.getInputProps("new_user.username")}
      />
      <PasswordInput
        label="Password"
        autoComplete="new-password"
        miw={120}
        {...form.getInputProps("new_user.password")}
      />
    </Group>
  );
}

/** Creates the typed user in the list, before the application is saved; false: it was refused, and its field says why. */
export function useNewUser(form: Form): () => Promise<boolean> {
  const connection = useConnection();
  const { mutateAsync } = useChange<Read<"credentials">, { id: string; secret: string }>({
    send: ({ id, secret }) =>
      connection.send(`/consumers/${id}/credentials`, {
        method: "POST",
        body: { type: "basic", secret },
      }),
    touches: ["consumers", "credentials"],
    done: () => null,
    showsErrors: true,
  });
  const add = async ({ new_user: user, ...values }: ApplicationValues) => {
    const group = listOf({ new_user: user, ...values }) ?? "";
    const body = { username: user.username.trim(), groups: [group] };
    const made = await connection.send<Read<"consumers">>("/consumers", { method: "POST", body });
    try {
      await mutateAsync({ id: made.value.id, secret: user.password });
    } catch (error) {
      // A user without a password would take the name.
      await connection.send(`/consumers/${made.value.id}`, { method: "DELETE" });
      throw error;
    }
  };
  return async () => {
    const values = form.getValues();
    const { username, password } = values.new_user;
    if (listOf(values) === null || (username === "" && password === "")) return true;
    if (username.trim() === "" || password === "") {
      const missing = username.trim() === "" ? "username" : "password";
      form.setFieldError(
        `new_user.${missing}`,
        missing === "password" ? "Password is required" : "Name is required",
      );
      return false;
    }
    try {
      await add(values);
      form.setFieldValue("new_user", noUser);
      return true;
    } catch (error) {
      const isPassword = error instanceof ApiError && error.field === "secret";
      const text =
        error instanceof ApiError && error.status === 409
          ? "This name exists already"
          : error instanceof ApiError
            ? error.detail
            : toMessage(error);
      form.setFieldError(`new_user.${isPassword ? "password" : "username"}`, text);
      return false;
    }
  };
}
