CREATE TABLE `consumers` (
	`position` integer PRIMARY KEY NOT NULL,
	`id` text NOT NULL,
	`created_at` text NOT NULL,
	`updated_at` text NOT NULL,
	`document` text NOT NULL,
	`username` text NOT NULL,
	`custom_id` text
);

CREATE UNIQUE INDEX `consumers_id_unique` ON `consumers` (`id`);
CREATE UNIQUE INDEX `consumers_username_unique` ON `consumers` (`username`);
CREATE UNIQUE INDEX `consumers_custom_id_unique` ON `consumers` (`custom_id`);
CREATE TABLE `credential_use` (
	`credential_id` text PRIMARY KEY NOT NULL,
	`last_used_at` text NOT NULL
);

CREATE TABLE `credentials` (
	`position` integer PRIMARY KEY NOT NULL,
	`id` text NOT NULL,
	`created_at` text NOT NULL,
	`updated_at` text NOT NULL,
	`document` text NOT NULL,
	`consumer_id` text NOT NULL,
	`lookup` text NOT NULL,
	FOREIGN KEY (`consumer_id`) REFERENCES `consumers`(`id`) ON UPDATE no action ON DELETE no action
);

CREATE UNIQUE INDEX `credentials_id_unique` ON `credentials` (`id`);
CREATE UNIQUE INDEX `credentials_lookup_unique` ON `credentials` (`lookup`);
CREATE INDEX `credentials_consumer` ON `credentials` (`consumer_id`);
CREATE TABLE `plugins` (
	`position` integer PRIMARY KEY NOT NULL,
	`id` text NOT NULL,
	`created_at` text NOT NULL,
	`updated_at` text NOT NULL,
	`document` text NOT NULL,
	`label` text
);

CREATE UNIQUE INDEX `plugins_id_unique` ON `plugins` (`id`);
CREATE UNIQUE INDEX `plugins_label_unique` ON `plugins` (`label`);