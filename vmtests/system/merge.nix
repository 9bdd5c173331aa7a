# Merges host modules as NixOS does for plain values: sets merge, lists join, equal values agree, others conflict.
modules:
let
  merge = path: left: right:
    if builtins.isAttrs left && builtins.isAttrs right then
      left // builtins.mapAttrs (name: value:
        if left ? ${name} then merge (path ++ [ name ]) left.${name} value else value) right
    else if builtins.isList left && builtins.isList right then left ++ right
    else if left == right then left
    else throw "the option `${builtins.concatStringsSep "." path}' has conflicting definition values";
in
builtins.foldl' (merge [ ]) { } modules
