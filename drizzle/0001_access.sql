CREATE TABLE `admin_token` (
	`id` integer PRIMARY KEY NOT NULL,
	`token_hash` text NOT NULL,
	`created_at` text NOT NULL
);

CREATE TABLE `audit` (
	`id` integer PRIMARY KEY AUTOINCREMENT NOT NULL,
	`at` text NOT NULL,
	`actor` text NOT NULL,
	`method` text NOT NULL,
	`address` text NOT NULL,
	`action` text NOT NULL,
	`kind` text NOT NULL,
	`object_id` text,
	`object_name` text,
	`result` text NOT NULL,
	`revision` integer,
	`detail` text
);

CREATE INDEX `audit_at` ON `audit` (`at`);
CREATE INDEX `audit_actor` ON `audit` (`actor`);
CREATE TABLE `secrets` (
	`position` integer PRIMARY KEY NOT NULL,
	`id` text NOT NULL,
	`created_at` text NOT NULL,
	`updated_at` text NOT NULL,
	`document` text NOT NULL,
	`name` text NOT NULL
);

CREATE UNIQUE INDEX `secrets_id_unique` ON `secrets` (`id`);
CREATE UNIQUE INDEX `secrets_name_unique` ON `secrets` (`name`);
CREATE TABLE `sessions` (
	`id` text PRIMARY KEY NOT NULL,
	`token_hash` text NOT NULL,
	`user_id` text NOT NULL,
	`method` text NOT NULL,
	`created_at` text NOT NULL,
	`expires_at` text NOT NULL,
	`address` text NOT NULL,
	`user_agent` text NOT NULL
);

CREATE UNIQUE INDEX `sessions_token_hash_unique` ON `sessions` (`token_hash`);
CREATE INDEX `sessions_user` ON `sessions` (`user_id`);
CREATE TABLE `sso` (
	`id` integer PRIMARY KEY NOT NULL,
	`updated_at` text NOT NULL,
	`document` text NOT NULL
);

CREATE TABLE `token_use` (
	`token_id` text PRIMARY KEY NOT NULL,
	`last_used_at` text NOT NULL
);

CREATE TABLE `tokens` (
	`position` integer PRIMARY KEY NOT NULL,
	`id` text NOT NULL,
	`created_at` text NOT NULL,
	`updated_at` text NOT NULL,
	`document` text NOT NULL,
	`name` text NOT NULL,
	`token_hash` text NOT NULL
);

CREATE UNIQUE INDEX `tokens_id_unique` ON `tokens` (`id`);
CREATE UNIQUE INDEX `tokens_name_unique` ON `tokens` (`name`);
CREATE UNIQUE INDEX `tokens_token_hash_unique` ON `tokens` (`token_hash`);
CREATE TABLE `totp` (
	`user_id` text PRIMARY KEY NOT NULL,
	`sealed_key` text NOT NULL,
	`confirmed` integer NOT NULL,
	`last_step` integer NOT NULL,
	`recovery_hashes` text NOT NULL
);

CREATE TABLE `users` (
	`position` integer PRIMARY KEY NOT NULL,
	`id` text NOT NULL,
	`created_at` text NOT NULL,
	`updated_at` text NOT NULL,
	`document` text NOT NULL,
	`email` text NOT NULL
);

CREATE UNIQUE INDEX `users_id_unique` ON `users` (`id`);
CREATE UNIQUE INDEX `users_email_unique` ON `users` (`email`);
CREATE TRIGGER `audit_is_append_only` BEFORE UPDATE ON `audit`
BEGIN
	SELECT RAISE(ABORT, 'audit entries are never changed');
END;
